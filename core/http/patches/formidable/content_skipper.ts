/** A parser that spares formidable the contents of parts. It goes by formidable's own state: see README.md. */
import { MultipartParser } from "formidable";
import type { MultipartLimits } from "../../../types.ts";
import { PieceParser } from "../../multipart_parser.ts";

/** The version of the npm package whose parser this was written for; package.json pins it. */
export const FORMIDABLE_VERSION = "3.5.4";

const CARRIAGE_RETURN = 13;
const BLANK_LINE = "\r\n\r\n";

/** A boundary and the headers behind it. */
const head = /^(?:\r\n)?--[^\r\n]*\r\n(?:[^:\r\n]+:[^\r\n]*\r\n)*\r\n$/;
/** A longer one is not looked at. */
const MAX_HEAD_BYTES = 4096;

/** What is touched: `state`, one of STATES, and `index`, bytes of a boundary met at the end of the last chunk. */
interface Insides {
  readonly state: unknown;
  readonly index: unknown;
}

const { START, PART_DATA_START, PART_DATA } = MultipartParser.STATES ?? {};
const contentStates: ReadonlySet<unknown> = new Set([PART_DATA_START, PART_DATA]);

function isInContent({ state, index }: Insides): boolean {
  return contentStates.has(state) && index === 0;
}

/** Finds contents with one search for the boundary, and hands formidable boundaries and headers only. */
export class ContentSkipper extends PieceParser {
  readonly #delimiter: Buffer;

  constructor(boundary: string, limits: MultipartLimits) {
    super(boundary, limits);
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  protected override contentIn(chunk: Buffer): number {
    if (!isInContent(this as unknown as Insides)) return 0;
    const at = chunk.indexOf(this.#delimiter);
    if (at >= 0) return at;
    // The end may be the beginning of a boundary.
    const begun = chunk.indexOf(CARRIAGE_RETURN, Math.max(0, chunk.length - this.#delimiter.length + 1));
    return begun < 0 ? chunk.length : begun;
  }

  /**
   * Where the headers end that begin at `from`; the end of the chunk where there are none, or not all of them, or where
   * they are malformed: what that is, formidable says.
   */
  protected override headEnd(chunk: Buffer, from: number): number {
    const insides = this as unknown as Insides;
    const isHead = isInContent(insides)
      ? chunk[from + this.#delimiter.length] === CARRIAGE_RETURN
      : insides.state === START;
    const at = isHead ? chunk.indexOf(BLANK_LINE, from) : -1;
    const end = at + BLANK_LINE.length;
    return at >= 0 && end - from <= MAX_HEAD_BYTES && head.test(chunk.toString("latin1", from, end))
      ? end
      : chunk.length;
  }
}

type Parser = new () => Insides & {
  initWithBoundary(boundary: string): void;
  _transform(chunk: Buffer, encoding: string, done: () => void): void;
};

/** Why formidable looks at every byte here, in a sentence; undefined when it is spared the contents. */
export function whyContentIsParsed(Tried = MultipartParser as unknown as Parser): string | undefined {
  const changed = (what: string) =>
    `formidable is not as its version ${FORMIDABLE_VERSION} (${what}): uploads are parsed byte by byte, which is slower`;
  try {
    if ([START, PART_DATA_START, PART_DATA].some((state) => typeof state !== "number")) return changed("its states");
    const parser = new Tried();
    const feed = (text: string) => parser._transform(Buffer.from(text), "binary", () => undefined);
    Object.assign(parser, { push: () => true });
    parser.initWithBoundary("b");
    if (parser.state !== START) return changed("where it starts");
    feed("--b\r\nA: b\r\n\r\nxy");
    if (!isInContent(parser)) return changed("its state within contents");
    feed("z\r\n-");
    if (isInContent(parser)) return changed("its state within what may be a boundary");
    return undefined;
  } catch (error) {
    return changed(error instanceof Error ? error.message : String(error));
  }
}

let isKnown: boolean | undefined;

/** The parser for a body whose lines end as they should. */
export function pieceParser(boundary: string, limits: MultipartLimits): PieceParser {
  isKnown ??= whyContentIsParsed() === undefined;
  return isKnown ? new ContentSkipper(boundary, limits) : new PieceParser(boundary, limits);
}
