import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  api_tokens: {
    type: "any",
    protects: true,
    secret: "keys",
    example: { "a-long-random-text": { paths: ["/api/v0/add", "/api/v0/pin"] } },
    describe:
      "Tokens for callers on other machines and behind proxies. A caller sends one as a bearer token or as the password of basic credentials. Give a list, or an object that maps each token to the paths that it may call.",
  },
  api_require_token: {
    type: "boolean",
    protects: true,
    default: false,
    describe:
      "Also require a token from callers on this machine, at every address. The command line uses the token in the file `api-token`, which is in the repo while the host runs and which only its owner can read.",
  },
  api_hosts: {
    type: "strings",
    default: [],
    describe:
      "Host names, in addition to localhost and loopback addresses, under which callers on this machine need no token.",
  },
  api_trusted_callers: {
    type: "strings",
    default: [],
    example: ["127.0.0.1"],
    describe:
      "Addresses and ranges of programs that need no token and may forward calls of others, such as the proxy of IPFS Cluster. Anybody who can reach such a program can make every call that it forwards. The address of the connection decides; headers are ignored.",
  },
  api_level: {
    type: "enum",
    values: ["0.9", "0.43"],
    default: "0.9",
    describe:
      "Level of the API, where go-ipfs 0.9 and Kubo 0.43 differ: `0.9` or `0.43`. Commands that Kubo added are available at both levels.",
  },
  api_listeners: {
    type: "any",
    default: [],
    example: [
      { address: "/ip4/127.0.0.1/tcp/5001", level: "0.43" },
      { mount: "/kubo/api/v0", level: "0.43" },
    ],
    describe:
      "Additional addresses and paths of the API, each with its own level: multiaddrs of TCP ports and Unix sockets, and paths on the ports of the host that end with /api/v0.",
  },
  api_pubsub_wire: {
    type: "enum",
    values: ["plain", "multibase"],
    describe:
      "Encoding of pubsub topics and messages in the API, at all levels: `plain` as in go-ipfs 0.9, `multibase` as in later versions. By default, each level has its own encoding.",
  },
  api_webui: {
    type: "string",
    example: "/srv/ipfs-webui",
    describe:
      "A front end for the API, at `/webui` of its addresses: a folder of built files (relative to the folder of the config file), or a CID or content path (`/ipfs/CID`, `/ipns/NAME`), which requires the module `http_gateway`. Its pages may call the API like programs on this machine.",
  },
  api_upload_pause: {
    type: "period",
    default: "1h",
    max: 86_400,
    describe:
      "How long a caller may pause in the middle of a request body, for example while it waits for its next block. If http_progress_timeout is longer, that time applies.",
  },
  api_config_edit: {
    type: "boolean",
    default: false,
    describe: "Allow `config/edit` to start an editor on the terminal of the host.",
  },
} as const satisfies OptionDeclarations;
