import { isColored, type Paint, padTo, painter, widthOf } from "../util/terminal.ts";

/** The standard output of the program: text for people, or one JSON value a line. */
export class Output {
  readonly json: boolean;
  /** Colours a text, if the stream should have colours. */
  readonly paint: Paint;
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream, json: boolean = !stream.isTTY, env: NodeJS.ProcessEnv = process.env) {
    this.#stream = stream;
    this.json = json;
    this.paint = painter(isColored(stream, env));
  }

  /** Number of columns of the terminal; undefined if it is not known. */
  get width(): number | undefined {
    return this.#stream.columns || undefined;
  }

  /** Writes the value for programs, or the text for people. */
  show(value: unknown, text: () => string): void {
    this.#stream.write(this.json ? `${JSON.stringify(value)}\n` : `${text()}\n`);
  }
}

/**
 * Formats rows in aligned columns, two spaces apart; the last column is not padded. Cells may be
 * coloured.
 */
export function columns(rows: readonly (readonly string[])[], indent = ""): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, widthOf(cell));
  }
  return rows
    .map(
      (row) => indent + row.map((cell, at) => (at < row.length - 1 ? padTo(cell, widths[at] ?? 0) : cell)).join("  "),
    )
    .map((line) => line.trimEnd())
    .join("\n");
}
