import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** The standard output of the program: text for people, or one JSON value a line. */
export class Output {
  readonly json: boolean;
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream, json: boolean = !stream.isTTY) {
    this.#stream = stream;
    this.json = json;
  }

  /** A value for programs, or the text for people. */
  show(value: unknown, text: () => string): void {
    this.#stream.write(this.json ? `${JSON.stringify(value)}\n` : `${text()}\n`);
  }

  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stream });
  }
}

/** Rows in aligned columns, two spaces apart; the last column is not padded. */
export function columns(rows: readonly (readonly string[])[], indent = ""): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return rows
    .map(
      (row) => indent + row.map((cell, at) => (at < row.length - 1 ? cell.padEnd(widths[at] ?? 0) : cell)).join("  "),
    )
    .map((line) => line.trimEnd())
    .join("\n");
}
