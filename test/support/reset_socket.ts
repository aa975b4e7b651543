/** Resets connections in tests, as the node does. */
export { resetSocket } from "#node/network/p2p/splice.ts";
