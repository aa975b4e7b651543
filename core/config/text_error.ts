/** A place in a text: line and column from 1. */
export interface TextPlace {
  readonly line: number;
  readonly column: number;
}

/** What is wrong in a text, and where; never with a piece of it, which may be a secret. */
export class TextError extends SyntaxError implements TextPlace {
  readonly line: number;
  readonly column: number;
  readonly what: string;

  constructor(line: number, column: number, what: string) {
    super(`line ${line}, column ${column}: ${what}`);
    this.line = line;
    this.column = column;
    this.what = what;
  }
}
