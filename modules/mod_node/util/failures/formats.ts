/** Failures of encodings: CIDs, hashes, bases, codecs, archives, and text as Go reads it. */
export const formatFailures = {
  // CIDs, hashes and bases
  /** A text is not a CID. */
  INVALID_CID: "{reason}",
  /** Bytes are not a CID. */
  CID_BYTES_INVALID: "{reason}",
  CID_FORMAT_INVALID: "invalid format string: {format}",
  /** A format string for CIDs has an invalid directive. */
  CID_SPECIFIER_INVALID: "{reason}",
  CID_VERSION_INVALID: "invalid cid version: {version}",
  CID_CODEC_NOT_OF_VERSION_0: "cannot convert to CIDv0 with any codec other than DagPB",
  /** A CID cannot be written in the requested version or base. */
  CID_NOT_CONVERTIBLE: "{reason}",
  CID_NOT_A_PEER_ID: "can't convert CID of type {codec} to a peer ID",
  INVALID_PEER_ID: "failed to parse peer ID: {reason}",
  HASH_INSECURE: "potentially insecure hash functions not allowed",
  HASH_SHORT: "hashes must be at {least} least bytes long",
  /** The requested length does not fit the hash function. */
  HASH_LENGTH_INVALID: "{reason}",
  HASH_UNKNOWN: "unrecognized hash function: {name}",
  /** No hash function has this name. */
  HASH_NAME_UNKNOWN: "{reason}",
  HASH_UNAVAILABLE: "unknown multihash code {code} (0x{hex}): no such hash registered",
  MULTIBASE_UNKNOWN: "Unsupported multibase encoding: {name}",
  /** A text is not valid in its multibase encoding. */
  MULTIBASE_INVALID: "{reason}",
  BASE64_INVALID: "illegal base64 data at input byte {offset}",
  // Codecs
  CODEC_UNKNOWN: "unrecognized format: {name}",
  /** No codec has this name or number, or no command can use it. */
  CODEC_NAME_UNKNOWN: "{reason}",
  CODEC_UNREADABLE: "unrecognized object type: {codec}",
  /** Bytes are not valid DAG-CBOR. */
  CBOR_INVALID: "{reason}",
  /** A text is not valid DAG-JSON. */
  DAG_JSON_INVALID: "{reason}",
  /** A value is not a valid DAG-JOSE node. */
  DAG_JOSE_INVALID: "{reason}",
  /** Bytes are not a valid DAG-PB node. */
  DAG_PB_INVALID: "{reason}",
  DAG_PB_LINK_INVALID: "link hash #{at} is not valid multihash. {reason}",
  /** Bytes are not a valid protobuf message. */
  PROTOBUF_INVALID: "{reason}",
  /** A codec or an encoding cannot represent a value. */
  VALUE_NOT_ENCODABLE: "{reason}",
  // Archives
  /** A CAR cannot be imported to its end. */
  ARCHIVE_BROKEN: "{reason}",
  /** Bytes are not a valid CAR. */
  CAR_INVALID: "{reason}",
  /** Bytes are not a valid tar archive. */
  TAR_INVALID: "{reason}",
  /** Content cannot be written as a tar archive. */
  TAR_NOT_WRITTEN: "{reason}",
  // Text as Go reads it
  /** A text is not valid JSON, or has another structure than expected. */
  JSON_INVALID: "{reason}",
  /** A text is not valid XML. */
  XML_INVALID: "{reason}",
  /** A text is not a number, or the number is out of range. */
  NUMBER_INVALID: "{reason}",
  /** A text is not a duration such as 1h30m. */
  DURATION_INVALID: "{reason}",
  /** A text is not a size such as 10GB. */
  SIZE_INVALID: "{reason}",
} as const satisfies Record<string, string>;
