import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  api_tokens: {
    type: "any",
    secret: "keys",
    example: { "a-long-random-text": { paths: ["/api/v0/add", "/api/v0/pin"] } },
    describe:
      "Tokens that callers from other machines and through proxies need, as a bearer token or as the password of basic credentials: a list, or an object of tokens with the paths that each one may call.",
  },
  api_require_token: {
    type: "boolean",
    default: false,
    describe:
      "Require a token from callers on this machine, too, at every address. The command line uses the one in the file `api-token`, which is in the repo while the host runs and readable by its owner only.",
  },
  api_hosts: {
    type: "strings",
    default: [],
    describe: "Host names, besides localhost and loopback addresses, at which callers on this machine need no token.",
  },
  api_pubsub_wire: {
    type: "enum",
    values: ["plain", "multibase"],
    default: "plain",
    describe:
      "Encoding of pubsub topics and messages in the API: `plain` as in go-ipfs 0.9, `multibase` for later clients.",
  },
  api_webui: {
    type: "string",
    example: "/srv/ipfs-webui",
    describe:
      "A front end for the API, at `/webui` of its addresses: a folder of built files (a relative path counts from the config file's folder), or a CID or content path (`/ipfs/CID`, `/ipns/NAME`), which takes the module `http_gateway`. Its pages may call the API as programs of this machine may.",
  },
  api_config_edit: {
    type: "boolean",
    default: false,
    describe: "Allow `config/edit` to start an editor on the terminal of the host.",
  },
} as const satisfies OptionDeclarations;
