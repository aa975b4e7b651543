/** `urlstore`: blocks that refer to ranges of resources at URLs. */
import { type Commands, defineGroup, value, writeCommand } from "../rpc/command.ts";
import { blockStat } from "./shapes.ts";

export const commands = {
  urlstore: defineGroup({ help: "Add content by URL without storing its bytes.", experimental: true }),
  "urlstore/add": writeCommand({
    help: "Adds the content of a URL without storing its bytes, which are fetched again when they are read.",
    needs: "Experimental.UrlstoreEnabled",
    arguments: [{ name: "url", required: true, help: "The URL." }],
    options: {
      trickle: { type: "bool", aliases: ["t"], help: "Use the trickle layout." },
      pin: { type: "bool", default: true, help: "Pin it." },
    },
    returns: value(blockStat),
    async run({ node, arguments: { url }, options: { trickle, pin }, signal, offline, cidText }) {
      const write = cidText();
      const { key, size } = await node.urlstore.add(url, { trickle, pin, signal, offline });
      return { Key: write(key), Size: size };
    },
    text: ({ Key }) => `${Key}\n`,
  }),
} satisfies Commands;
