import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  gateway_no_fetch: {
    type: "boolean",
    protects: true,
    default: true,
    applies: "live",
    describe:
      "Serve only what is on this machine. Else whoever can ask the server makes the node fetch whatever they name, and keep it until the next collection of garbage.",
  },
  gateway_deserialized_responses: {
    type: "boolean",
    default: true,
    applies: "live",
    describe:
      "Serve files, pages and documents. Without it only what a client can check by itself: raw blocks, archives (CAR) and records of names.",
  },
  gateway_html_errors: {
    type: "boolean",
    default: true,
    applies: "live",
    describe: "Answer browsers with a page where something is wrong; everybody else gets a line of text.",
  },
  gateway_public_gateways: {
    type: "object",
    default: {},
    example: { "gateway.example": { Paths: ["/ipfs", "/ipns"], UseSubdomains: true, InlineDNSLink: true } },
    applies: "live",
    describe:
      "Hosts that are known as gateways, as Gateway.PublicGateways of go-ipfs has them: by name (`*` is any label, a port may follow) { Paths, UseSubdomains, InlineDNSLink, NoDNSLink, DeserializedResponses }, or null to take one away. With UseSubdomains each root has a host of its own, `CID.ipfs.NAME`, and requests to other hosts of the server are not touched. `localhost` is such a gateway unless it is taken away.",
  },
  gateway_dnslink: {
    type: "boolean",
    default: false,
    applies: "live",
    describe:
      "Serve the website of any host that is not in `hosts` and that the DNS has a link for (`_dnslink.HOST`). Each strange host of a request is looked up then, and the answer kept for a minute.",
  },
  gateway_routing: {
    type: "boolean",
    default: false,
    applies: "live",
    describe:
      "Answer at `/routing/v1` who has a block, where a peer is, and with records of names (delegated routing), and take such records. Whoever can ask makes the node ask its peers then, also with `gateway_no_fetch`.",
  },
  gateway_headers: {
    type: "object",
    default: {},
    example: { "Strict-Transport-Security": "max-age=31536000" },
    applies: "live",
    describe:
      "Further headers of every answer, each a text or a list. Access-Control-Allow-Headers and -Expose-Headers are joined with what the gateway needs, others replace its own.",
  },
  gateway_max_concurrent_requests: {
    type: "integer",
    min: 0,
    default: 4096,
    applies: "live",
    describe: "Requests that are answered at a time; those beyond are sent away with 429 and Retry-After. 0: no limit.",
  },
  gateway_rate: {
    type: "string",
    protects: true,
    default: "",
    example: "50/s",
    applies: "live",
    describe:
      "Requests of one address in a time: 10/s, 600/m, 5000/h; those beyond are sent away with 429 and Retry-After. IPv6 counts by networks of 64 bits; behind `trusted_proxies` the address is that of the client. Also at Addresses.Gateway of a repo. Empty: no limit.",
  },
  gateway_burst: {
    type: "integer",
    min: 0,
    default: 0,
    applies: "live",
    describe:
      "Requests of one address that may come at once, such as a page with its pictures; 0: those of one second, at least 1.",
  },
  gateway_retrieval_timeout: {
    type: "period",
    min: 0,
    default: "30s",
    applies: "live",
    describe:
      "How long an answer waits for its next bytes before it is given up, with 504 where it has not begun. 0: without end.",
  },
  gateway_max_request_duration: {
    type: "period",
    min: 0,
    default: "1h",
    applies: "live",
    describe: "How long an answer may take in all. 0: without end.",
  },
  gateway_max_range_request_file_size: {
    type: "size",
    min: 0,
    default: 0,
    applies: "live",
    describe: "Files larger than this are served whole, and their ranges refused with 501. 0: ranges of any file.",
  },
} as const satisfies OptionDeclarations;
