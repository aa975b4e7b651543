/**
 * How the table of the sweep is written: a call for each parameter of a command, and what it
 * changes.
 */

/** A file that says where it lies. */
export interface Placed {
  readonly content: string;
  readonly abspath: string;
}

/** What is sent as the file of a call. */
export type Sent = string | Uint8Array | Placed;

export interface Answer {
  readonly bytes: Buffer;
  /** Status, count of bytes, the bytes as text, and the trailer of a failure. */
  readonly text: string;
}

type Shows = RegExp | ((answer: Answer, fields: Fields) => boolean);

/** Values of answers so far, by name; CIDs as text. */
export type Fields = Readonly<Record<string, string>>;

/**
 * A call, with or without a file; `{x}` stands for a fixture or a field of an answer before it,
 * `{n}` for a number that no other run has.
 */
export type Step = string | readonly [call: string, file: Sent];

export interface Effect {
  readonly call: string;
  readonly file?: Sent;
  /** Calls in front of it. */
  readonly before?: readonly Step[];
  /** Calls behind it: the last one's answer is looked at instead, unless the call itself fails. */
  readonly after?: readonly Step[];
  readonly shows: Shows;
  /** What is answered without the parameter. By default: anything that `shows` does not fit. */
  readonly otherwise?: RegExp;
}

/** The sender's work: with and without it the answer is the same. */
export interface Same {
  readonly call: string;
  readonly file?: Sent;
  readonly same: true;
}

/** Shown by a test of another file, of which this is the name. */
export interface ShownBy {
  readonly test: string;
  readonly in: string;
}

export type Line = Effect | Same | ShownBy;

/** By the long name of an option, `<name>` for an argument, `encoding` for the text form. */
export type Lines = Readonly<Record<string, Line>>;

export type Sweep = Readonly<Record<string, Lines>>;

export const missingArgument = (name: string): RegExp => new RegExp(`^400 .*argument "${name}" is required`);
