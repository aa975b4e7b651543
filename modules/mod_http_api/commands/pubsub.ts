/** Messages under topics, in the form of 0.9 and in that of later clients. */
import { isUtf8 } from "node:buffer";
import { base64url } from "multiformats/bases/base64";
import { multibaseOfPrefix } from "../../mod_node/formats/cid/multibase.ts";
import type { PeerId } from "../../mod_node/formats/peer_id.ts";
import { varintLength, writeVarint } from "../../mod_node/formats/protobuf/varint.ts";
import { MAX_MESSAGE_SIZE } from "../../mod_node/network/pubsub/limits.ts";
import type { Pubsub, PubsubMessage } from "../../mod_node/network/pubsub/pubsub.ts";
import { failure, NodeError } from "../../mod_node/util/errors.ts";
import { printable } from "../../mod_node/util/go/text.ts";
import {
  type AnyCall,
  type Argument,
  type Command,
  type Commands,
  defineCommand,
  defineGroup,
  nothing,
  type Option,
  stream,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import type { FileEntry } from "../rpc/uploads.ts";
import { lines, orNull, strings } from "./shapes.ts";

const about = `These are the forms of go-ipfs 0.9: topics stand in calls as they are, messages in the query or a line each, and come
in base64. With the option \`api_pubsub_wire: multibase\` of the host (\`MODHOST_API_PUBSUB_WIRE=multibase\` in the environment of
\`modhost node daemon\`) the API has those of later versions instead, and \`kubo-rpc-client\` needs them: topics and messages are in
multibase (base64url), and one message is the body of a call:

\`\`\`sh
curl -X POST "http://127.0.0.1:5280/api/v0/pubsub/pub?arg=t2&arg=hello"               # plain
printf hello | curl -F file=@- "http://127.0.0.1:5280/api/v0/pubsub/pub?arg=udDI"     # multibase; udDI is t2
\`\`\`

\`modhost rpc\` takes topics as they are, whichever form the server has; in the latter \`pub\` takes a file or the standard input.`;

/** How topics and messages stand in calls and answers. */
interface Wire {
  /** The topic that an argument names. @throws NodeError */
  topic(given: Uint8Array): string;
  peer(id: PeerId): string;
  shownTopic(topic: string): string;
  bytes(bytes: Uint8Array): string;
  /** What `bytes` wrote. */
  read(text: string): Uint8Array;
  readonly pub: Command;
}

const message = fields("pubsubMessage", {
  "from?": "base64",
  "data?": "base64",
  "seqno?": "base64",
  "topicIDs?": ["string"],
});
type ShownMessage = ValueOf<typeof message>;

/** @throws NodeError while it is switched off, or the node has no network */
async function pubsubOf({ lowLevel: node }: Pick<AnyCall, "lowLevel">): Promise<Pubsub> {
  const pubsub = node.online ? (await node.network()).pubsub : undefined;
  if (pubsub === undefined) throw failure("PUBSUB_OFF");
  return pubsub;
}

/** @throws NodeError: libp2p has texts for topics */
function textOf(topic: Uint8Array): string {
  if (!isUtf8(topic)) throw new NodeError("a topic must be valid UTF-8");
  return Buffer.from(topic).toString("utf8");
}

const topicArgument = { name: "topic", required: true, bytes: true, help: "The topic." } as const satisfies Argument;
const discover = {
  type: "bool",
  deprecated: true,
  help: "Look for other subscribers; that is always done now.",
} as const satisfies Option;

const publish = { help: "Publishes messages.", returns: nothing } as const;

/** As in 0.9: topics as they are, bytes in base64, messages in the query or a line each. */
export const plain: Wire = {
  topic: textOf,
  peer: (id) => plain.bytes(id.toMultihash().bytes),
  shownTopic: (topic) => topic,
  bytes: (bytes) => Buffer.from(bytes).toString("base64"),
  read: (text) => Buffer.from(text, "base64"),
  pub: defineCommand({
    ...publish,
    arguments: [
      topicArgument,
      { name: "data", required: true, variadic: true, stdin: "lines", bytes: true, help: "The messages." },
    ],
    async run(call) {
      const pubsub = await pubsubOf(call);
      const topic = plain.topic(call.arguments.topic);
      for (const message of call.arguments.data) await pubsub.publish(topic, message);
    },
  }),
};

/** As later clients have it: topics and bytes in multibase, one message, which is the body. */
export const multibase: Wire = {
  topic: (given) => textOf(decoded(Buffer.from(given).toString("latin1"))),
  peer: (id) => id.toString(),
  shownTopic: (topic) => multibase.bytes(Buffer.from(topic)),
  bytes: (bytes) => base64url.encode(bytes),
  read: (text) => base64url.decode(text),
  pub: defineCommand({
    ...publish,
    arguments: [topicArgument],
    file: { name: "data", required: true, help: "The message." },
    async run(call) {
      const pubsub = await pubsubOf(call);
      const topic = multibase.topic(call.arguments.topic);
      await pubsub.publish(topic, await messageIn(await call.files.one()));
    },
  }),
};

/** @throws NodeError with the texts of later versions of the reference */
function decoded(text: string): Uint8Array {
  const base = multibaseOfPrefix(text.slice(0, 1));
  if (base !== undefined && base.prefix !== base64url.prefix) throw new NodeError("URL arg must be base64url encoded");
  try {
    return base64url.decode(text);
  } catch (error) {
    throw new NodeError(`URL arg must be multibase encoded: ${(error as Error).message}`, { cause: error });
  }
}

/** No more of it than shows that it is too long. */
async function messageIn({ body }: FileEntry): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    if (length > MAX_MESSAGE_SIZE) break;
  }
  return Buffer.concat(pieces);
}

/** What is empty is left out. */
function shown(wire: Wire, { from, data, sequence, topic }: PubsubMessage): ShownMessage {
  return {
    ...(from && { from: wire.peer(from) }),
    ...(data.length > 0 && { data: wire.bytes(data) }),
    ...(sequence && { seqno: wire.bytes(sequence) }),
    topicIDs: [wire.shownTopic(topic)],
  };
}

async function* shownAll(wire: Wire, messages: AsyncIterable<PubsubMessage>): AsyncGenerator<ShownMessage> {
  for await (const message of messages) yield shown(wire, message);
}

function withLength(bytes: Uint8Array): Uint8Array {
  const before = new Uint8Array(varintLength(bytes.length));
  writeVarint(before, 0, bytes.length);
  return Buffer.concat([before, bytes]);
}

export function commandsIn(wire: Wire): Commands {
  const payload = ({ data }: ShownMessage) => (data === undefined ? new Uint8Array() : wire.read(data));
  return {
    pubsub: defineGroup({ help: "Publish messages and subscribe to them.", experimental: true, about }),
    "pubsub/ls": defineCommand({
      help: "Lists the topics subscribed to.",
      returns: strings.returns,
      async run(call) {
        return { Strings: orNull((await pubsubOf(call)).topics().map(wire.shownTopic)) };
      },
      text: ({ Strings: topics }) => lines((topics ?? []).map((topic) => printable(wire.topic(Buffer.from(topic))))),
    }),
    "pubsub/peers": defineCommand({
      help: "Lists the peers that take part.",
      arguments: [{ name: "topic", bytes: true, help: "Only those subscribed to it." }],
      ...strings,
      async run(call) {
        const pubsub = await pubsubOf(call);
        const { topic = new Uint8Array() } = call.arguments;
        return { Strings: pubsub.peers(topic.length === 0 ? undefined : wire.topic(topic)).map(String) };
      },
    }),
    "pubsub/pub": wire.pub,
    "pubsub/sub": defineCommand({
      help: "Subscribes, and gives the messages as they come.",
      arguments: [topicArgument],
      options: { discover },
      eager: true,
      returns: stream(message),
      async run(call) {
        const pubsub = await pubsubOf(call);
        return shownAll(wire, pubsub.subscribe(wire.topic(call.arguments.topic), call.signal));
      },
      text: payload,
      encodings: {
        ndpayload: { type: "text/plain", encode: (message) => Buffer.concat([payload(message), Buffer.from("\n")]) },
        lenpayload: { type: "text/plain", encode: (message) => withLength(payload(message)) },
      },
    }),
  };
}
