/** Makes, imports, lists, renames and removes keys. Keys that a node makes are random. */
import type { CallResponse, Case, Compared, Family, Level } from "../family.ts";
import { comparedByDefault } from "../family.ts";
import { flags, upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const LENGTH = 8;
/** A private Ed25519 key as a protobuf. It comes from a public test vector, so it is no secret. */
const KNOWN = Buffer.from(
  `08011240${"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"}${"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"}`,
  "hex",
);

function* sequence(random: CaseRandom, level: Level, at: number): Case {
  const names = [`k${at}`, `l${at}`, `m ${at}`, `é${at}`, "self", "", ".", `a/b${at}`, `-${at}`, `missing${at}`];
  const name = () => encodeURIComponent(random.pick([...names.slice(0, 4), ...names]));
  const base = ["ipns-base=b58mh", "ipns-base=base36", "ipns-base=base32", "ipns-base=b", "ipns-base=x"];
  const bases = () => flags(random, [random.pick(base)], 0.3);
  const types = [
    "type=ed25519",
    ...(level === "0.9" ? [] : ["type=secp256k1"]),
    "type=x",
    "type=",
    "size=0",
    "size=-1",
    "size=256",
    "size=2048",
    "size=100",
  ];
  const formats = level === "0.9" ? [] : ["format=libp2p-protobuf-cleartext", "format=pem-pkcs8-cleartext", "format=x"];
  const makers = {
    gen: () => ({ path: `key/gen?arg=${name()}${flags(random, types, 0.2)}${bases()}` }),
    import: () => ({
      path: `key/import?arg=${name()}${flags(random, formats, 0.2)}${bases()}`,
      parts: [upload(random.chance(0.8) ? KNOWN : Buffer.from(random.pick(["", "x", "\u0008\u0001"])))],
    }),
    rename: () => ({ path: `key/rename?arg=${name()}&arg=${name()}${flags(random, ["force=true"])}${bases()}` }),
    rm: () => ({
      path: `key/rm?arg=${name()}${random.chance(0.2) ? `&arg=${name()}` : ""}${flags(random, ["l=true"])}${bases()}`,
    }),
  };
  const every = ["gen", "gen", "import", "import", "rename", "rm"] as const;
  for (let left = LENGTH; left > 0; left -= 1) yield makers[random.pick(every)]();
  yield { path: `key/list?l=true${bases()}` };
  for (const each of names)
    if (each !== "" && each !== "self") yield { path: `key/rm?arg=${encodeURIComponent(each)}` };
}

/** Compares only the form of identities if each node has made its own key. */
function compare(response: CallResponse): Compared {
  const { response: text, refusal } = comparedByDefault(response);
  return { response: formsIn(text), refusal: refusal && formsIn(refusal) };
}

const formsIn = (text: string): string =>
  text.replace(/\b(k51q|k2k4|kzw|bafz|12D3|16Ui|Qm|z5A|ba)[\w]{20,}/g, (_, start: string) => `<${start}>`);

export const family: Family = { name: "key", random: sequence, compare, explained: [], recorded: 20 };
