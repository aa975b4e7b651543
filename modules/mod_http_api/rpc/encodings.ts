/** Encodings of values and errors: json, text, textnl, xml, and encodings of single commands. */

import { goJson, type NodeError, textBytes } from "modhost/node";
import type { AnyCall, Command, Encoding, Group, Listing } from "./command.ts";
import { isCommand } from "./command.ts";
import { type Level, wordingOf } from "./levels.ts";
import { escapeXml, toXml } from "./xml.ts";

/** An error in the form that is sent to clients. */
export interface Failure {
  readonly message: string;
  /** 0: an ordinary error; 1: the client's fault. */
  readonly code: 0 | 1;
}

export interface Encoder {
  /** Content-Type of values. */
  readonly type: string;
  /** `previous` is the value before it in a stream. */
  value(value: unknown, call: AnyCall, previous: unknown): string | Uint8Array;
  /**
   * Encodes a long list while its items arrive. Encodings without this method need the whole value.
   */
  listing?(listing: Listing<unknown>, pages: AsyncIterable<readonly unknown[]>): AsyncIterable<string>;
  /** Content-Type of errors. */
  readonly failureType: string;
  failure(failure: Failure): string;
}

const failureJson = ({ message, code }: Failure) => `${goJson({ Message: message, Code: code, Type: "error" })}\n`;
const inJson = { failureType: "application/json", failure: failureJson };
const inText = { failureType: "text/plain", failure: ({ message }: Failure) => message };

/** Returns the text for values of commands without a `text` function. */
const printed = (value: unknown): string => (typeof value === "string" ? value : goJson(value));

const json: Encoder = {
  type: "application/json",
  value: (value) => `${goJson(value)}\n`,
  listing: jsonListing,
  ...inJson,
};

/** Number of characters to collect before sending a chunk. */
const CHUNK_CHARACTERS = 64 * 1024;

async function* jsonListing(
  listing: Listing<unknown>,
  pages: AsyncIterable<readonly unknown[]>,
): AsyncGenerator<string, void, undefined> {
  let text = "";
  for await (const bit of listing.json(pages)) {
    text += bit;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = "";
  }
  yield `${text}\n`;
}

const textnl: Encoder = {
  type: "text/plain",
  value: (value) => `${printed(value)}\n`,
  failureType: "text/plain",
  failure: ({ message }) => `${message}\n`,
};

/** Converts text to bytes so that names in it keep bytes that are not UTF-8. */
const asBytes = (text: string | Uint8Array): string | Uint8Array =>
  typeof text !== "string" || text.isWellFormed() ? text : textBytes(text);

function textOf(command: Command | undefined): Encoder {
  const text = command?.text;
  if (command === undefined || text === undefined) return { type: "text/plain", value: printed, ...inText };
  return {
    type: "text/plain",
    value: (value, call, previous) => asBytes(text.call(command, value, call, previous)),
    ...inText,
  };
}

function xmlOf(command: Command | undefined): Encoder {
  return {
    type: "application/xml",
    value: (value) => toXml(value, command?.returns.shape ?? "any"),
    failureType: "application/xml",
    failure: ({ message, code }) => `<Error><Message>${escapeXml(message)}</Message><Code>${code}</Code></Error>`,
  };
}

const ownOf = ({ type, encode }: Encoding<unknown>): Encoder => ({ type, value: (value) => encode(value), ...inJson });

/** Returns the encoder with that name; undefined if the command does not support it. */
export function encoderOf(entry: Command | Group, name: string): Encoder | undefined {
  const command = isCommand(entry) ? entry : undefined;
  switch (name) {
    case "json":
      return json;
    case "text":
      return textOf(command);
    case "textnl":
      return textnl;
    case "xml":
      return xmlOf(command);
    default: {
      const own = command !== undefined && Object.hasOwn(command.encodings, name) ? command.encodings[name] : undefined;
      return own && ownOf(own);
    }
  }
}

/** Converts any thrown value to the error for the client. */
export function failureOf(thrown: unknown, level: Level): Failure {
  const { kind } = (typeof thrown === "object" && thrown !== null ? thrown : {}) as Partial<NodeError>;
  return { message: wordingOf(thrown, level), code: kind === "client" ? 1 : 0 };
}
