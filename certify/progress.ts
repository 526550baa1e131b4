/** A Playwright reporter: how far a certification is. One line that moves on a terminal, else a line now and then. */
import type { FullConfig, Reporter, Suite, TestCase, TestResult } from '@playwright/test/reporter';

const PLAIN_EVERY_MS = 5_000;

export default class Progress implements Reporter {
  private total = 0;
  private done = 0;
  private told = 0;
  private readonly moves = Boolean(process.stdout.isTTY) && !process.env['CI'];

  printsToStdio(): boolean {
    return true;
  }

  onBegin(_: FullConfig, suite: Suite): void {
    this.total = suite.allTests().length;
    this.told = Date.now();
  }

  onTestBegin(test: TestCase): void {
    this.tell(test.title);
  }

  onTestEnd(_test: TestCase, result: TestResult): void {
    this.done++;
    // A probe never throws for the target: this is the kit's own doing.
    for (const error of result.errors)
      this.line(`the kit went wrong: ${(error.message ?? '').split('\n')[0]}`);
  }

  onError(error: { message?: string }): void {
    this.line(`the kit went wrong: ${(error.message ?? 'unknown').split('\n')[0]}`);
  }

  onEnd(): void {
    if (this.moves) process.stdout.write('\r\x1b[K');
  }

  private tell(title: string): void {
    const text = `${this.done}/${this.total}  ${title}`;
    if (this.moves) {
      const columns = process.stdout.columns || 80;
      process.stdout.write(`\r\x1b[K${text.length < columns ? text : `${text.slice(0, columns - 2)}…`}`);
    } else if (Date.now() - this.told >= PLAIN_EVERY_MS) {
      this.line(text.split(' (')[0]!);
    }
  }

  private line(text: string): void {
    process.stdout.write(`${this.moves ? '\r\x1b[K' : ''}${text}\n`);
    this.told = Date.now();
  }
}
