/** Messages under topics. */
import { defineGroup, nothing, stream, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { stringList } from "./shapes.ts";

export const commands = later({
  pubsub: defineGroup({ help: "Publish messages and subscribe to them.", experimental: true }),
  "pubsub/ls": { help: "Lists the topics subscribed to.", returns: value(stringList) },
  "pubsub/peers": {
    help: "Lists the peers that take part.",
    arguments: [{ name: "topic", help: "Only those subscribed to it." }],
    returns: value(stringList),
  },
  "pubsub/pub": {
    help: "Publishes messages.",
    arguments: [
      { name: "topic", required: true, bytes: true, help: "The topic." },
      { name: "data", required: true, variadic: true, stdin: "lines", bytes: true, help: "The messages." },
    ],
    returns: nothing,
  },
  "pubsub/sub": {
    help: "Subscribes, and gives the messages as they come.",
    arguments: [{ name: "topic", required: true, bytes: true, help: "The topic." }],
    options: {
      discover: { type: "bool", deprecated: true, help: "Look for other subscribers; that is always done now." },
    },
    eager: true,
    returns: stream(
      fields("pubsubMessage", { "from?": "base64", "data?": "base64", "seqno?": "base64", "topicIDs?": ["string"] }),
    ),
  },
});
