/** `pubsub`: publish and subscribe, in the encoding of 0.9 or in that of later clients. */
import { isUtf8 } from "node:buffer";
import { decodeMultibaseText, failure, NodeError, type PubsubMessage, parsePeerId, printable } from "modhost/node";
import { varint } from "multiformats";
import { base58btc } from "multiformats/bases/base58";
import { base64url } from "multiformats/bases/base64";
import {
  type Argument,
  type Command,
  type Commands,
  defineGroup,
  type Encoding,
  nothing,
  type Option,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { lines, orNull, strings } from "./shapes.ts";

const about = `By default, the encoding is that of go-ipfs 0.9: calls contain plain topics, messages are in the query or one per line of
the body, and received messages are in base64. With the option \`api_pubsub_wire: multibase\` of the host
(\`MODHOST_API_PUBSUB_WIRE=multibase\` in the environment of \`modhost node daemon\`) the API has the encoding of later versions, which
\`kubo-rpc-client\` needs: topics and messages are in multibase (base64url), and the body of a call is a single message:

\`\`\`sh
curl -X POST "http://127.0.0.1:5280/api/v0/pubsub/pub?arg=t2&arg=hello"               # plain
printf hello | curl -F file=@- "http://127.0.0.1:5280/api/v0/pubsub/pub?arg=udDI"     # multibase; udDI is t2
\`\`\`

\`modhost rpc\` takes plain topics with either encoding. With multibase, \`pub\` takes a file or the standard input.`;

/** How topics and messages are encoded in calls and responses. */
interface Wire {
  /** Decodes a topic argument. @throws NodeError */
  topic(given: Uint8Array): string;
  peer(id: string): string;
  shownTopic(topic: string): string;
  bytes(bytes: Uint8Array): string;
  /** Decodes what `bytes` encoded. */
  read(text: string): Uint8Array;
  readonly pub: Command;
  readonly message: typeof message | typeof multibaseMessage;
  /** Encodings of messages in addition to json and text, by name. */
  readonly encodings: Readonly<Record<string, Encoding<ShownMessage>>>;
}

const message = fields("pubsubMessage", {
  "from?": "base64",
  "data?": "base64",
  "seqno?": "base64",
  "topicIDs?": ["string"],
});
type ShownMessage = ValueOf<typeof message>;

/** The message in later versions, whose texts carry their multibase prefix. */
const multibaseMessage = fields("pubsubMessage", {
  "from?": "string",
  "data?": "string",
  "seqno?": "string",
  "topicIDs?": ["string"],
});

/** @throws NodeError for bytes that are not UTF-8, since libp2p topics are text */
function textOf(topic: Uint8Array): string {
  if (!isUtf8(topic)) throw failure("ARGUMENT_INVALID", { reason: "a topic must be valid UTF-8" });
  return Buffer.from(topic).toString("utf8");
}

const topicArgument = { name: "topic", required: true, bytes: true, help: "The topic." } as const satisfies Argument;
const discover = {
  type: "bool",
  deprecated: true,
  help: "Search for other subscribers; always done here.",
} as const satisfies Option;

const publish = { help: "Publishes messages.", returns: nothing } as const;

/**
 * The encoding of 0.9: plain topics, bytes in base64, messages in the query or one per line of the
 * body.
 */
export const plain: Wire = {
  message,
  encodings: {
    ndpayload: { type: "text/plain", encode: (message) => Buffer.concat([payload(plain, message), Buffer.from("\n")]) },
    lenpayload: { type: "text/plain", encode: (message) => withLength(payload(plain, message)) },
  },
  topic: textOf,
  peer: (id) => plain.bytes(base58btc.baseDecode(id)),
  shownTopic: (topic) => topic,
  bytes: (bytes) => Buffer.from(bytes).toString("base64"),
  read: (text) => Buffer.from(text, "base64"),
  pub: writeCommand({
    ...publish,
    arguments: [
      topicArgument,
      { name: "data", required: true, variadic: true, stdin: "lines", bytes: true, help: "The messages." },
    ],
    async run({ node, arguments: { topic, data } }) {
      for (const message of data) await node.pubsub.publish(plain.topic(topic), message);
    },
  }),
};

/**
 * The encoding of later clients: topics and bytes in multibase, and the body is a single message.
 */
export const multibase: Wire = {
  message: multibaseMessage,
  encodings: { ndpayload: removed("ndpayload"), lenpayload: removed("lenpayload") },
  topic: (given) => textOf(decoded(Buffer.from(given).toString("latin1"))),
  peer: (id) => id,
  shownTopic: (topic) => multibase.bytes(Buffer.from(topic)),
  bytes: (bytes) => base64url.encode(bytes),
  read: (text) => base64url.decode(text),
  pub: writeCommand({
    ...publish,
    arguments: [topicArgument],
    file: { name: "data", required: true, help: "The message." },
    async run({ node, arguments: { topic }, files }) {
      await node.pubsub.publish(multibase.topic(topic), (await files.one()).body);
    },
  }),
};

/** @throws NodeError with the error texts of Kubo */
function decoded(text: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = decodeMultibaseText(text);
  } catch (error) {
    throw failure(
      "ARGUMENT_INVALID",
      { reason: `URL arg must be multibase encoded: ${(error as Error).message}` },
      error,
    );
  }
  if (!text.startsWith(base64url.prefix))
    throw failure("ARGUMENT_INVALID", { reason: "URL arg must be base64url encoded" });
  return bytes;
}

const payload = (wire: Wire, { data }: ShownMessage): Uint8Array =>
  data === undefined ? new Uint8Array() : wire.read(data);

/** An encoding that later versions have removed. It reports that in place of the first message. */
function removed(name: string): Encoding<ShownMessage> {
  const encode = () => {
    throw failure("COMMAND_REMOVED", { reason: `--enc=${name} was removed, use --enc=json instead` });
  };
  return { type: "text/plain", encode };
}

/**
 * This node never drops a message because of its sequence number, so there is no state to reset.
 */
const reset = writeCommand({
  help: "Forgets the sequence numbers that publishers have used. This node stores none: it remembers messages for two minutes.",
  since: "0.43",
  options: { peer: { type: "string", aliases: ["p"], unset: [""], help: "Only the numbers of this peer." } },
  returns: value(fields("resetResult", { deleted: "int" })),
  run({ options: { peer }, wording }) {
    try {
      if (peer !== undefined) parsePeerId(peer);
    } catch (error) {
      throw new NodeError("INVALID_PEER_ID", `invalid peer ID: ${wording(error)}`, { cause: error });
    }
    return { deleted: 0 };
  },
  text: ({ deleted }, { options: { peer } }) =>
    peer === undefined
      ? `Reset validator state for ${deleted} peer(s)\n`
      : `No validator state found for peer ${peer}\n`,
});

/** Converts a message to its wire form and omits empty fields. */
function shown(wire: Wire, message: PubsubMessage): ShownMessage {
  const { topic, data } = message;
  return {
    ...(message.type === "signed" && { from: wire.peer(String(message.from)) }),
    ...(data.length > 0 && { data: wire.bytes(data) }),
    ...(message.type === "signed" && { seqno: wire.bytes(sequenceBytes(message.sequenceNumber)) }),
    topicIDs: [wire.shownTopic(topic)],
  };
}

function sequenceBytes(number: bigint): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(number);
  return bytes;
}

async function* shownAll(wire: Wire, messages: AsyncIterable<PubsubMessage>): AsyncGenerator<ShownMessage> {
  for await (const message of messages) yield shown(wire, message);
}

const withLength = (bytes: Uint8Array): Uint8Array =>
  Buffer.concat([varint.encodeTo(bytes.length, new Uint8Array(varint.encodingLength(bytes.length))), bytes]);

export function commandsIn(wire: Wire): Commands {
  return {
    pubsub: defineGroup({ help: "Publish messages and subscribe to them.", experimental: true, about }),
    "pubsub/ls": readCommand({
      help: "Lists the topics subscribed to.",
      returns: strings.returns,
      run: async ({ node }) => ({ Strings: orNull((await node.pubsub.ls()).map(wire.shownTopic)) }),
      text: ({ Strings: topics }) => lines((topics ?? []).map((topic) => printable(wire.topic(Buffer.from(topic))))),
    }),
    "pubsub/peers": readCommand({
      help: "Lists the peers of a topic.",
      arguments: [{ name: "topic", bytes: true, help: "Only peers that subscribe to this topic." }],
      ...strings,
      async run({ node, arguments: { topic = new Uint8Array() } }) {
        return { Strings: await node.pubsub.peers(topic.length === 0 ? undefined : wire.topic(topic)) };
      },
    }),
    "pubsub/pub": wire.pub,
    "pubsub/reset": reset,
    "pubsub/sub": readCommand({
      help: "Subscribes to a topic and streams its messages.",
      arguments: [topicArgument],
      options: { discover },
      eager: true,
      endless: true,
      returns: stream(wire.message),
      async run({ node, arguments: { topic }, signal }) {
        return shownAll(wire, await node.pubsub.messages(wire.topic(topic), { signal }));
      },
      text: (message) => payload(wire, message),
      encodings: wire.encodings,
    }),
  };
}
