/** Text as Go prints it: the node needs it, too. */
export * from "./node/go/text.ts";
