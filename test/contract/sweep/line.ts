/**
 * The form of the sweep's table: a call for each parameter of a command, and the effect of the
 * parameter.
 */

/** A file with the path that it has on the client. */
export interface Placed {
  readonly content: string;
  readonly abspath: string;
}

/** The file of a call. */
export type SentFile = string | Uint8Array | Placed;

export interface SweepResponse {
  readonly bytes: Buffer;
  /** Status, number of bytes, the bytes as text, and the trailer of a failure. */
  readonly text: string;
}

type Shows = RegExp | ((response: SweepResponse, fields: Fields) => boolean);

/** Values of responses so far, by name. CIDs are text. */
export type Fields = Readonly<Record<string, string>>;

/**
 * A call, with or without a file. `{x}` stands for a fixture or a field of an earlier response,
 * `{n}` for a number that no other run has.
 */
export type SweepStep = string | readonly [call: string, file: SentFile];

export interface Effect {
  readonly call: string;
  readonly file?: SentFile;
  /** Calls before it. */
  readonly before?: readonly SweepStep[];
  /**
   * Calls after it. The response of the last one is checked instead, unless the call itself fails.
   */
  readonly after?: readonly SweepStep[];
  readonly shows: Shows;
  /**
   * Matches the response without the parameter. By default, that is any response that `shows` does
   * not match.
   */
  readonly otherwise?: RegExp;
}

/** A parameter that only affects the client: with and without it the response is the same. */
export interface Same {
  readonly call: string;
  readonly file?: SentFile;
  readonly same: true;
}

/** A test of another file that shows the effect. */
export interface ShownBy {
  readonly test: string;
  readonly in: string;
}

export type SweepLine = Effect | Same | ShownBy;

/**
 * Lines by the long name of an option, `<name>` for an argument, and `encoding` for the text form.
 */
export type Lines = Readonly<Record<string, SweepLine>>;

export type Sweep = Readonly<Record<string, Lines>>;

export const missingArgument = (name: string): RegExp => new RegExp(`^400 .*argument "${name}" is required`);
