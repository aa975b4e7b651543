/**
 * Reads one XML element as Go does, with its error texts. It does not support document types and
 * does not limit nesting.
 */
import { isUtf8 } from "node:buffer";
import { ITEMS_PER_STEP, type Steps } from "../async/steps.ts";
import { failure } from "../errors.ts";
import { quote } from "./text.ts";

export interface XmlVisitor {
  /** Called with the local name. */
  start(name: string): void;
  text(text: string): void;
  end(): void;
}

const entities: ReadonlyMap<string, string> = new Map(
  Object.entries({ lt: "<", gt: ">", amp: "&", apos: "'", quot: '"' }),
);

const name = /[\p{L}_:][\p{L}\p{N}\p{M}_:.\-\u00b7]*/uy;
const nameLike = /[A-Za-z0-9_:.\-\u0080-\u{10ffff}]+/uy;
const blanks = /\s*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const illegal = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udfff]/u;

/** Number of characters whose entities are resolved in one step. */
const TEXT_AT_ONCE = 64 * 1024;

/**
 * Visits the first element in steps, and skips everything before and after it.
 * @throws NodeError with Go's text
 */
export function* visitXml(bytes: Uint8Array, visitor: XmlVisitor): Steps<void> {
  if (!isUtf8(bytes)) throw failure("XML_INVALID", { reason: "XML syntax error on line 1: invalid UTF-8" });
  yield* new Reader(Buffer.from(bytes).toString().replace(/\r\n?/g, "\n"), visitor).read();
}

class Reader {
  readonly #text: string;
  readonly #visitor: XmlVisitor;
  readonly #open: string[] = [];
  /** Name of the element whose start tag is being read. */
  #tag: string | undefined;
  #at = 0;
  #over = false;

  constructor(text: string, visitor: XmlVisitor) {
    this.#text = text;
    this.#visitor = visitor;
  }

  *read(): Steps<void> {
    let readTo = 0;
    for (let parts = 1; ; parts += 1) {
      this.#part();
      if (this.#over) return;
      if (parts % ITEMS_PER_STEP === 0 || this.#at >= readTo + TEXT_AT_ONCE) {
        readTo = this.#at;
        yield;
      }
    }
  }

  #part(): void {
    if (this.#tag !== undefined) {
      this.#inTag(this.#tag);
      return;
    }
    if (this.#at >= this.#text.length) this.#fail("unexpected EOF");
    if (this.#text[this.#at] !== "<") this.#characters();
    else if (this.#consume("<!--")) this.#comment();
    else if (this.#consume("<![CDATA[")) this.#emitText(this.#until("]]>", "unexpected EOF in CDATA section"));
    else if (this.#consume("<!")) this.#directive();
    else if (this.#consume("<?")) this.#instruction();
    else if (this.#consume("</")) this.#end();
    else this.#start();
  }

  #emitText(text: string): void {
    const bad = illegal.exec(text)?.[0];
    if (bad !== undefined) this.#fail(`illegal character code U+${hex(bad)}`);
    if (this.#open.length > 0 && text !== "") this.#visitor.text(text);
  }

  /** Reads the text before the next tag. It ends at an entity once the text is long. */
  #characters(): void {
    const next = this.#text.indexOf("<", this.#at);
    const end = next < 0 ? this.#text.length : next;
    if (next < 0 && /&#?\w*$/.test(this.#text.slice(this.#at))) this.#fail("unexpected EOF");
    const entity = end - this.#at > TEXT_AT_ONCE ? this.#text.indexOf("&", this.#at + TEXT_AT_ONCE) : -1;
    const raw = this.#text.slice(this.#at, entity < 0 || entity > end ? end : entity);
    if (raw.includes("]]>")) this.#fail("unescaped ]]> not in CDATA section");
    this.#at += raw.length;
    this.#emitText(this.#resolved(raw));
  }

  #resolved(raw: string): string {
    if (!raw.includes("&")) return raw;
    return raw.replace(/&(#?\w*)(;?)/g, (whole, entity: string, end: string) => {
      if (end === "") return this.#fail(`invalid character entity ${whole} (no semicolon)`);
      const known = entities.get(entity);
      if (known !== undefined) return known;
      const [, digits, number] = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(entity) ?? [];
      const code = digits !== undefined ? Number.parseInt(digits, 16) : Number(number);
      if (code <= 0x10ffff) return code >= 0xd800 && code < 0xe000 ? "\ufffd" : String.fromCodePoint(code);
      return this.#fail(`invalid character entity ${whole}`);
    });
  }

  #comment(): void {
    this.#until("--", "unexpected EOF");
    if (this.#at >= this.#text.length) this.#fail("unexpected EOF");
    if (!this.#consume(">")) this.#fail('invalid sequence "--" not allowed in comments');
  }

  /** Skips a document type declaration or another directive, with balanced quotes and brackets. */
  #directive(): void {
    if (this.#text[this.#at] === "-") this.#fail("invalid sequence <!- not part of <!--");
    if (this.#text[this.#at] === "[") this.#fail("invalid <![ sequence");
    let depth = 1;
    while (depth > 0) {
      const letter = this.#text[this.#at++] ?? this.#fail("unexpected EOF");
      if (letter === '"' || letter === "'") this.#until(letter, "unexpected EOF");
      else if (letter === "<") depth += 1;
      else if (letter === ">") depth -= 1;
    }
  }

  #instruction(): void {
    const target = this.#name("expected target name after <?");
    const content = this.#until("?>", "unexpected EOF");
    if (target !== "xml") return;
    const [, version = "1.0"] = /\sversion=["']([^"']*)["']/.exec(content) ?? [];
    if (version !== "1.0") {
      throw failure("XML_INVALID", {
        reason: `xml: unsupported version ${quote(version)}; only version 1.0 is supported`,
      });
    }
    const [, encoding = "utf-8"] = /\sencoding=["']([^"']*)["']/.exec(content) ?? [];
    if (encoding.toLowerCase() !== "utf-8") {
      throw failure("XML_INVALID", {
        reason: `xml: encoding ${quote(encoding)} declared but Decoder.CharsetReader is nil`,
      });
    }
  }

  #start(): void {
    this.#at += 1;
    this.#tag = this.#name("expected element name after <");
  }

  /** Reads an attribute, or the end of the tag. */
  #inTag(element: string): void {
    this.#blanks();
    if (this.#consume("/>")) {
      this.#enter(element);
      this.#leave();
    } else if (this.#consume(">")) this.#enter(element);
    else if (this.#text[this.#at] === "/") this.#fail("expected /> in element");
    else this.#attribute();
  }

  #attribute(): void {
    this.#name("expected attribute name in element");
    this.#blanks();
    if (!this.#consume("=")) this.#fail("attribute name without = in element");
    this.#blanks();
    const mark = this.#text[this.#at] ?? "";
    if (mark !== '"' && mark !== "'") this.#fail("unquoted or missing attribute value in element");
    this.#at += 1;
    const end = this.#text.indexOf(mark, this.#at);
    const value = this.#text.slice(this.#at, end < 0 ? undefined : end);
    if (value.includes("<")) this.#fail("unescaped < inside quoted string");
    this.#until(mark, "unexpected EOF");
    this.#resolved(value);
  }

  #end(): void {
    const element = this.#name("expected element name after </");
    this.#blanks();
    if (!this.#consume(">")) this.#fail(`invalid characters between </${element} and >`);
    const open = this.#open.at(-1);
    if (open === undefined) this.#fail(`unexpected end element </${element}>`);
    if (open !== element) this.#fail(`element <${open}> closed by </${element}>`);
    this.#leave();
  }

  #enter(element: string): void {
    this.#tag = undefined;
    this.#open.push(element);
    this.#visitor.start(element.slice(element.indexOf(":") + 1));
  }

  #leave(): void {
    this.#open.pop();
    this.#visitor.end();
    this.#over = this.#open.length === 0;
  }

  #name(missing: string): string {
    nameLike.lastIndex = this.#at;
    const found =
      nameLike.exec(this.#text)?.[0] ?? this.#fail(this.#at < this.#text.length ? missing : "unexpected EOF");
    name.lastIndex = this.#at;
    if (name.exec(this.#text)?.[0] !== found) this.#fail(`invalid XML name: ${found}`);
    this.#at += found.length;
    // An empty prefix is valid.
    return found.replace(/^:/, "");
  }

  #until(end: string, missing: string): string {
    const next = this.#text.indexOf(end, this.#at);
    if (next < 0) this.#fail(missing);
    const inner = this.#text.slice(this.#at, next);
    this.#at = next + end.length;
    return inner;
  }

  #consume(start: string): boolean {
    if (!this.#text.startsWith(start, this.#at)) return false;
    this.#at += start.length;
    return true;
  }

  #blanks(): void {
    blanks.lastIndex = this.#at;
    this.#at += blanks.exec(this.#text)?.[0].length ?? 0;
    if (this.#at >= this.#text.length) this.#fail("unexpected EOF");
  }

  #fail(reason: string): never {
    const line = this.#text.slice(0, this.#at).split("\n").length;
    throw failure("XML_INVALID", { reason: `XML syntax error on line ${line}: ${reason}` });
  }
}

const hex = (letter: string): string => (letter.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
