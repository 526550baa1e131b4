/** Closes what was opened, in reverse order. Replaces AsyncDisposableStack, which Node 20 lacks. */
export class Disposal implements AsyncDisposable {
  readonly #opened: AsyncDisposable[] = [];

  use<Value extends AsyncDisposable>(value: Value): Value {
    this.#opened.push(value);
    return value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}
