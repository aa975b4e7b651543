/** Roots as labels of a host name: 63 characters at most, without case. */
import { cidText, multibaseNamed, parseCid, parsePeerId } from "modhost/node";
import { Refusal } from "../errors/refusal.ts";
import { keyOf, keyText } from "../request/path.ts";

type Cid = ReturnType<typeof parseCid>;

/** RFC 1035. */
const MAX_LABEL_LENGTH = 63;
const base36 = multibaseNamed("base36");
const base58 = multibaseNamed("base58btc");

/** The CID of a label, whatever its case; undefined for none. */
export function cidOf(label: string): Cid | undefined {
  for (const text of new Set([label, label.toLowerCase()])) {
    try {
      return parseCid(text);
    } catch {}
  }
  return undefined;
}

/** Base32, which all know; base36 where that is too long. @throws {Refusal} 400 for one that no label can hold */
export function cidLabel(cid: Cid): string {
  const known = cid.version === 0 ? cid.toV1() : cid;
  return fitting(cidText(known), () => cidText(known, base36));
}

/** The name of a key in the one form that hosts have; undefined for what is none. */
export function keyLabel(root: string): string | undefined {
  const known = keyOf(root) ?? keyOf(root.toLowerCase());
  if (known !== undefined) return known;
  // A key that was written as the CID of a block.
  const cid = root.includes(".") ? undefined : cidOf(root);
  if (cid === undefined) return undefined;
  try {
    return keyText(parsePeerId(base58.encoder.encode(cid.multihash.bytes).slice(1)));
  } catch {
    return undefined;
  }
}

/** A domain as one label: `en.my-site.org` is `en-my--site-org`. @throws {Refusal} 400 for one that is too long */
export const inlined = (domain: string): string =>
  fitting(domain.replaceAll("-", "--").replaceAll(".", "-"), () => undefined);

/** The domain of a label. */
export const domainOf = (label: string): string => label.replace(/--?/g, (run) => (run === "--" ? "-" : "."));

/** What can stand before a gateway in a URL as it is. */
export const isHostName = (text: string): boolean =>
  text.length <= 253 && /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(text);

function fitting(label: string, shorter: () => string | undefined): string {
  if (label.length <= MAX_LABEL_LENGTH) return label;
  const short = shorter();
  if (short !== undefined && short.length <= MAX_LABEL_LENGTH) return short;
  throw new Refusal(
    400,
    `${label} has no host of its own here: a label of a host name has at most ${MAX_LABEL_LENGTH} characters. Ask a gateway that serves it by path.`,
  );
}
