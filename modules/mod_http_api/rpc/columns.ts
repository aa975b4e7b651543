/**
 * Formats lines of cells as aligned text, like Go's text/tabwriter: a column is a run of adjacent
 * lines that have a cell there, and is as wide as its widest cell. The last cell of a line is never
 * padded. `least` is the minimum column width, padding included; `gap` is the number of spaces
 * after the widest cell.
 */
export function columns(lines: readonly (readonly string[])[], least: number, gap = 1): string {
  const widths = lines.map((): number[] => []);
  const longest = lines.reduce((most, cells) => Math.max(most, cells.length), 0);
  for (let column = 0; column < longest - 1; column += 1) {
    for (let from = 0; from < lines.length; ) {
      let to = from;
      let width = least;
      for (let cell = cellAt(lines, to, column); cell !== undefined; cell = cellAt(lines, to, column)) {
        width = Math.max(width, [...cell].length + gap);
        to += 1;
      }
      for (let at = from; at < to; at += 1) (widths[at] as number[]).push(width);
      from = to + 1;
    }
  }
  return lines
    .map((cells, line) => `${cells.map((cell, at) => cell.padEnd(widths[line]?.[at] ?? 0)).join("")}\n`)
    .join("");
}

/** Returns a cell that belongs to a column, which the last cell of a line does not. */
function cellAt(lines: readonly (readonly string[])[], line: number, column: number): string | undefined {
  const cells = lines[line];
  return cells !== undefined && column < cells.length - 1 ? cells[column] : undefined;
}
