import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  gateway_no_fetch: {
    type: "boolean",
    protects: true,
    default: true,
    applies: "live",
    describe:
      "Serve only content that is on this machine. Otherwise, anybody who can send requests can make the node fetch any content and store it until the next garbage collection.",
  },
  gateway_deserialized_responses: {
    type: "boolean",
    default: true,
    applies: "live",
    describe:
      "Serve files, pages and documents. If this is off, the gateway only serves responses that clients can verify: raw blocks, archives (CAR) and IPNS records.",
  },
  gateway_html_errors: {
    type: "boolean",
    default: true,
    applies: "live",
    describe: "Send browsers a page for an error; other clients get a line of text.",
  },
  gateway_public_gateways: {
    type: "object",
    default: {},
    example: { "gateway.example": { Paths: ["/ipfs", "/ipns"], UseSubdomains: true, InlineDNSLink: true } },
    applies: "live",
    describe:
      "Hosts that act as gateways, as in Gateway.PublicGateways of go-ipfs: { Paths, UseSubdomains, InlineDNSLink, NoDNSLink, DeserializedResponses } by host name (`*` matches any label, a port may follow), or null to remove an entry. With UseSubdomains, each root has its own host, `CID.ipfs.NAME`; other hosts of the server are not affected. `localhost` is such a gateway unless it is removed.",
  },
  gateway_dnslink: {
    type: "boolean",
    default: false,
    applies: "live",
    describe:
      "Serve the website of any host that is not in `hosts` and has a DNSLink (`_dnslink.HOST`). Each unknown host in a request is looked up, and the result is cached for a minute.",
  },
  gateway_routing: {
    type: "boolean",
    default: false,
    applies: "live",
    describe:
      "Serve delegated routing at `/routing/v1`: clients can ask who has a block and where a peer is, and can read and store IPNS records. Such requests make the node query its peers, even with `gateway_no_fetch`.",
  },
  gateway_headers: {
    type: "object",
    default: {},
    example: { "Strict-Transport-Security": "max-age=31536000" },
    applies: "live",
    describe:
      "Additional headers of every response, each a text or a list. Access-Control-Allow-Headers and -Expose-Headers extend the gateway's own values; other headers replace them.",
  },
  gateway_max_concurrent_requests: {
    type: "integer",
    min: 0,
    default: 4096,
    applies: "live",
    describe: "Maximum number of concurrent requests; further ones get 429 with Retry-After. 0: no limit.",
  },
  gateway_rate: {
    type: "string",
    protects: true,
    default: "",
    example: "50/s",
    applies: "live",
    describe:
      "Maximum number of requests per address and time: 10/s, 600/m or 5000/h; further ones get 429 with Retry-After. IPv6 addresses are counted per /64 network; behind `trusted_proxies`, the address of the client is counted. Also applies at Addresses.Gateway of a repo. Empty: no limit.",
  },
  gateway_burst: {
    type: "integer",
    min: 0,
    default: 0,
    applies: "live",
    describe:
      "Maximum number of requests from one address at once, such as a page with its images. 0: as many as the rate allows in a second, but at least 1.",
  },
  gateway_retrieval_timeout: {
    type: "period",
    min: 0,
    default: "30s",
    applies: "live",
    describe:
      "How long a response may wait for its next bytes before it is abandoned, with 504 if it has not begun. 0: no limit.",
  },
  gateway_max_request_duration: {
    type: "period",
    min: 0,
    default: "1h",
    applies: "live",
    describe: "Maximum total time of a response. 0: no limit.",
  },
  gateway_max_range_request_file_size: {
    type: "size",
    min: 0,
    default: 0,
    applies: "live",
    describe: "Files larger than this are only served whole: range requests get 501. 0: ranges of all files.",
  },
} as const satisfies OptionDeclarations;
