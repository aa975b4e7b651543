/** A position in a text: line and column from 1. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/**
 * An error in a text, with its position. The message never quotes the text, which may contain a
 * secret.
 */
export class TextError extends SyntaxError implements TextPosition {
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
