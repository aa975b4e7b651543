/** Publishes names under a known key, resolves them and publishes them again, without a network. */
import type { Case, Family, Level } from "../family.ts";
import { flags, upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const LENGTH = 7;
/** A private Ed25519 key as a protobuf. It comes from a public test vector, so it is no secret. */
const KNOWN = Buffer.from(
  `08011240${"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"}${"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"}`,
  "hex",
);
/** The name of the key, in two forms. */
const FORMS = [
  "k51qzi5uqu5dhpjot0f7ncinr7yh3njwtxy129qjgpbdu9rydw02vtek4g2ubw",
  "12D3KooWDwTirQce1RRKnasT5fPVFgzXCy6SiRgSwrwPGLC7zE91",
];
const EMPTY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

function* sequence(random: CaseRandom, level: Level): Case {
  const paths = [`/ipfs/${EMPTY}`, EMPTY, "bafkqaaa", `/ipfs/${EMPTY}/x`, "bogus", "", `/ipfs/bafkqaaa`];
  const lifetimes = ["lifetime=1h", "lifetime=1", "lifetime=x", "lifetime=-1h", "ttl=1m", "ttl=x", "ttl=0s", "ttl=48h"];
  const later =
    level === "0.9" ? [] : ["v1compat=false", "sequence=1", "sequence=1000", "sequence=x", "allow-delegated=true"];
  const publish = () => ({
    path: `name/publish?arg=${encodeURIComponent(random.pick(paths))}&key=${random.pick(["known", "known", "known", "missing", ""])}${flags(random, ["allow-offline=true"], 0.85)}${flags(random, ["resolve=false", "quieter=true", ...lifetimes, ...later], 0.15)}`,
  });
  const resolve = () => ({
    path: `name/resolve?arg=${encodeURIComponent(random.pick([...FORMS, `/ipns/${FORMS[0]}`, "", `/ipns/${FORMS[0]}/x`]))}${flags(random, ["recursive=false", "nocache=true", "stream=true", "dht-record-count=1", "dht-timeout=x"], 0.15)}`,
  });
  for (let left = LENGTH; left > 0; left -= 1) yield random.pick([publish, resolve])();
}

export const family: Family = {
  name: "name",
  before: [
    { path: "key/import?arg=known", parts: [upload(KNOWN)] },
    { path: "add?quieter=true", parts: [upload("")] },
  ],
  random: sequence,
  explained: [],
  recorded: 30,
};
