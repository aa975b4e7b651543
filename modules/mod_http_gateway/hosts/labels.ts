/** Encodes roots as labels of a host name, which have at most 63 characters and ignore case. */
import { cidText, multibaseNamed, parseCid, parsePeerId } from "modhost/node";
import { Refusal } from "../errors/refusal.ts";
import { keyOf, keyText } from "../request/path.ts";

type Cid = ReturnType<typeof parseCid>;

/** Maximum length of a label in a host name (RFC 1035). */
const MAX_LABEL_LENGTH = 63;
const base36 = multibaseNamed("base36");
const base58 = multibaseNamed("base58btc");

/** Returns the CID of a label in any case; undefined if it is not a CID. */
export function cidOf(label: string): Cid | undefined {
  for (const text of new Set([label, label.toLowerCase()])) {
    try {
      return parseCid(text);
    } catch {}
  }
  return undefined;
}

/**
 * Returns the CID in base32, which all clients know, or in base36 if that is too long. @throws
 * {Refusal} 400 for a CID that fits no label
 */
export function cidLabel(cid: Cid): string {
  const known = cid.version === 0 ? cid.toV1() : cid;
  return fitting(cidText(known), () => cidText(known, base36));
}

/** Returns the name of a key in the form that hosts have; undefined if it is not a key. */
export function keyLabel(root: string): string | undefined {
  const known = keyOf(root) ?? keyOf(root.toLowerCase());
  if (known !== undefined) return known;
  // The key may be written like the CID of a block.
  const cid = root.includes(".") ? undefined : cidOf(root);
  if (cid === undefined) return undefined;
  try {
    return keyText(parsePeerId(base58.encoder.encode(cid.multihash.bytes).slice(1)));
  } catch {
    return undefined;
  }
}

/**
 * Returns a domain as one label: `en.my-site.org` becomes `en-my--site-org`. @throws {Refusal} 400
 * for a domain that is too long
 */
export const inlined = (domain: string): string =>
  fitting(domain.replaceAll("-", "--").replaceAll(".", "-"), () => undefined);

/** Returns the domain that a label stands for. */
export const domainOf = (label: string): string => label.replace(/--?/g, (run) => (run === "--" ? "-" : "."));

/** Whether a text is a host name that needs no escaping in a URL. */
export const isHostName = (text: string): boolean =>
  text.length <= 253 && /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(text);

function fitting(label: string, shorter: () => string | undefined): string {
  if (label.length <= MAX_LABEL_LENGTH) return label;
  const short = shorter();
  if (short !== undefined && short.length <= MAX_LABEL_LENGTH) return short;
  throw new Refusal(
    400,
    `CID incompatible with DNS label length limit of ${MAX_LABEL_LENGTH}: ${short ?? label}. Request it from a gateway that serves it by path.`,
  );
}
