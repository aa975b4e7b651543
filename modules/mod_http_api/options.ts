import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  api_tokens: {
    type: "any",
    protects: true,
    secret: "keys",
    example: { "a-long-random-text": { paths: ["/api/v0/add", "/api/v0/pin"] } },
    describe:
      "Tokens that callers from other machines and through proxies need, as a bearer token or as the password of basic credentials: a list, or an object of tokens with the paths that each one may call.",
  },
  api_require_token: {
    type: "boolean",
    protects: true,
    default: false,
    describe:
      "Require a token from callers on this machine, too, at every address. The command line uses the one in the file `api-token`, which is in the repo while the host runs and readable by its owner only.",
  },
  api_hosts: {
    type: "strings",
    default: [],
    describe: "Host names, besides localhost and loopback addresses, at which callers on this machine need no token.",
  },
  api_trusted_callers: {
    type: "strings",
    default: [],
    example: ["127.0.0.1"],
    describe:
      "Addresses and ranges whose programs need no token and may hand on calls of others, such as the proxy of IPFS Cluster: whoever reaches that can then do here what it lets through. It counts where a connection comes from, and not what headers say.",
  },
  api_level: {
    type: "enum",
    values: ["0.9", "0.43"],
    default: "0.9",
    describe:
      "The level at which the API answers where two generations of clients differ: `0.9` as go-ipfs 0.9, `0.43` as Kubo 0.43. What is new in the latter is served at both.",
  },
  api_listeners: {
    type: "any",
    default: [],
    example: [
      { address: "/ip4/127.0.0.1/tcp/5001", level: "0.43" },
      { mount: "/today/api/v0", level: "0.43" },
    ],
    describe:
      "Further places of the API, each at a level of its own: addresses, as multiaddrs of TCP ports and Unix sockets, and paths on the ports of the host, which end with /api/v0.",
  },
  api_pubsub_wire: {
    type: "enum",
    values: ["plain", "multibase"],
    describe:
      "Encoding of pubsub topics and messages in the API, at all levels: `plain` as in go-ipfs 0.9, `multibase` as in later versions. Left out, each level has its own.",
  },
  api_webui: {
    type: "string",
    example: "/srv/ipfs-webui",
    describe:
      "A front end for the API, at `/webui` of its addresses: a folder of built files (a relative path counts from the config file's folder), or a CID or content path (`/ipfs/CID`, `/ipns/NAME`), which takes the module `http_gateway`. Its pages may call the API as programs of this machine may.",
  },
  api_upload_pause: {
    type: "period",
    default: "1h",
    max: 86_400,
    describe:
      "How long a caller may send nothing in the midst of the body of a call, such as a client that waits for its next block; http_progress_timeout holds where it is longer.",
  },
  api_config_edit: {
    type: "boolean",
    default: false,
    describe: "Allow `config/edit` to start an editor on the terminal of the host.",
  },
} as const satisfies OptionDeclarations;
