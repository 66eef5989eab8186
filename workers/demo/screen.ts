import type { WriteStream } from 'node:tty';

const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
const CLEAR_TO_LINE_END = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';

/**
 * The lower part of a terminal, drawn again and again in place.
 *
 * A frame is one write over the last frame; clearing it first would flicker. Lines that are printed or kept scroll up
 * above the frame like any output.
 */
export class Screen {
  readonly #out: WriteStream;
  /** Lines of the frame that is on the terminal now. */
  #height = 0;

  constructor(out: WriteStream) {
    this.#out = out;
  }

  /** Draws a frame in place of the last one. No line may be wider than the terminal. */
  frame(lines: readonly string[]): void {
    const text = lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join('');
    this.#out.write(`${HIDE_CURSOR}${this.#up()}${text}${CLEAR_BELOW}`);
    this.#height = lines.length;
  }

  /** Leaves the frame where it is; the next one starts below it. */
  keep(): void {
    this.#height = 0;
    this.#out.write(SHOW_CURSOR);
  }

  /** Writes a line in place of the frame; the next call of {@link frame} draws it below. */
  print(line: string): void {
    this.#out.write(`${this.#up()}${line}${CLEAR_TO_LINE_END}\n${CLEAR_BELOW}`);
    this.#height = 0;
  }

  #up(): string {
    return this.#height > 0 ? `\x1b[${this.#height}A` : '';
  }
}
