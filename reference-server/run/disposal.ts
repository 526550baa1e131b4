/** What was opened, to be closed in the opposite order: AsyncDisposableStack, which Node 20 does not have. */
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
