/**
 * Makes the bodies of test vectors from their descriptions. `about` in the files explains the
 * fields.
 */
import { goRandom } from "#test/support/go_random.ts";

export type BodyContent =
  | { readonly text: string }
  | { readonly hex: string }
  | { readonly base64: string }
  | { readonly repeat: { readonly text: string; readonly count: number } }
  | { readonly goRandom: { readonly size: number; readonly seed: number } }
  | { readonly xorshift32: { readonly size: number; readonly seed: number } }
  | { readonly tar: readonly TarEntry[] };

interface TarEntry {
  readonly name: string;
  readonly text?: string;
  readonly symlink?: string;
}

export type BodyNode =
  | { readonly file: BodyContent }
  | { readonly dir: BodyTree }
  | { readonly symlink: string }
  | { readonly numbered: { readonly name: string; readonly text: string; readonly from: number; readonly to: number } };

export type BodyTree = Readonly<Record<string, BodyNode>>;

export function contentOf(content: BodyContent): Buffer {
  if ("text" in content) return Buffer.from(content.text);
  if ("hex" in content) return Buffer.from(content.hex, "hex");
  if ("base64" in content) return Buffer.from(content.base64, "base64");
  if ("repeat" in content) return Buffer.from(content.repeat.text.repeat(content.repeat.count));
  if ("goRandom" in content) return goRandom(content.goRandom.size, content.goRandom.seed);
  if ("xorshift32" in content) return xorshift(content.xorshift32.size, content.xorshift32.seed);
  return Buffer.concat([...content.tar.map(tarEntry), Buffer.alloc(1024)]);
}

function xorshift(size: number, seed: number): Buffer {
  const bytes = Buffer.alloc(size);
  let x = seed;
  for (let at = 0; at < size; at += 1) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    bytes[at] = x & 0xff;
  }
  return bytes;
}

/** Makes an entry in the USTAR format, as `about` describes it. */
function tarEntry({ name, text = "", symlink = "" }: TarEntry): Buffer {
  const header = Buffer.alloc(512);
  const isFolder = name.endsWith("/");
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, "0")}\0`;
  const data = Buffer.from(text);
  header.write(name, 0);
  header.write(octal(isFolder ? 0o755 : 0o644, 8) + octal(0, 8) + octal(0, 8) + octal(data.length, 12), 100);
  header.write(octal(1_600_000_000, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write(isFolder ? "5" : symlink === "" ? "0" : "2", 156);
  header.write(symlink, 157);
  header.write("ustar\u000000", 257);
  header.write(octal(0, 8) + octal(0, 8), 329);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, data, Buffer.alloc((512 - (data.length % 512)) % 512)]);
}

const boundary = "known-answers-boundary";

export interface Multipart {
  readonly type: string;
  readonly body: Buffer;
}

export const multipartType = `multipart/form-data; boundary=${boundary}`;

/**
 * One part of a body. `many` repeats it, with a number after the name, which is padded with zeros
 * up to `pad`.
 */
export type Part = Partial<BodyContent> & {
  readonly filename: string;
  readonly type?: string;
  readonly name?: string;
  readonly many?: { readonly count: number; readonly pad: number };
};

export function multipartOf(parts: readonly Part[]): Multipart {
  const pieces = new Pieces();
  for (const { filename, type, name, many, ...content } of parts) {
    const bytes = Object.keys(content).length === 0 ? Buffer.alloc(0) : contentOf(content as BodyContent);
    for (let at = 0; at < (many?.count ?? 1); at += 1) {
      const number = many === undefined ? "" : String(at).padStart(many.pad, "0");
      pieces.part(`${filename}${number}`, type, bytes, name);
    }
  }
  return pieces.whole();
}

class Pieces {
  readonly #pieces: Buffer[] = [];

  part(path: string, type = "application/octet-stream", content: Buffer, name = "file"): void {
    const file = path === "" ? "" : `; filename="${encodeURIComponent(path)}"`;
    const head = `Content-Disposition: form-data; name="${name}"${file}\r\nContent-Type: ${type}`;
    this.#pieces.push(Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`), content, Buffer.from("\r\n"));
  }

  whole(): Multipart {
    return { type: multipartType, body: Buffer.concat([...this.#pieces, Buffer.from(`--${boundary}--\r\n`)]) };
  }
}

export function multipart(tree: BodyTree): Multipart {
  const pieces = new Pieces();
  const part = (path: string, type: string, content: Buffer) => pieces.part(path, type, content);
  const walk = (path: string, node: BodyNode) => {
    if ("file" in node) part(path, "application/octet-stream", contentOf(node.file));
    else if ("symlink" in node) part(path, "application/symlink", Buffer.from(node.symlink));
    else {
      part(path, "application/x-directory", Buffer.alloc(0));
      const inner = "dir" in node ? node.dir : numbered(node.numbered);
      // Programs send directories in sorted order.
      const names = Object.keys(inner).sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
      for (const name of names) walk(`${path}/${name}`, inner[name] as BodyNode);
    }
  };
  for (const [name, node] of Object.entries(tree)) walk(name, node);
  return pieces.whole();
}

function numbered({ name, text, from, to }: Extract<BodyNode, { numbered: unknown }>["numbered"]): BodyTree {
  const put = (pattern: string, number: number) => pattern.replaceAll("%d", String(number));
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  return Object.fromEntries(
    numbers.map((number) => [put(name, number), { file: { text: put(text, number) } }] as const),
  );
}
