/** How much may be sent at once (network section 11). */

/** Bytes of one RPC; nodes of the reference hang up on longer ones. */
export const longestRpc = 2 ** 20;
/** Bytes beside topic and data in the RPC of one message: who sent it, its number, its signature, keys of any kind. */
const envelope = 4096;
/** Bytes of topic and data together. */
export const longestMessage = longestRpc - envelope;
