/** The certificates of a server, as modules see them. */

/** A certificate that the server serves. */
export interface CertificateState {
  /** The host name that it is served for; "*": clients that ask for no name, or for one without a certificate. */
  readonly name: string;
  /** `file`: of the option `certificates`. `self-signed`: made by the server. `acme`: by a certificate authority, through ACME. */
  readonly source: "file" | "self-signed" | "acme";
  /** ISO 8601. */
  readonly expires: string;
  /** SHA-256 of the certificate, hexadecimal digits in pairs. */
  readonly fingerprint: string;
}

/** `certificates-changed`: the names whose certificates are others now. */
export interface CertificatesChangedEvent {
  readonly names: readonly string[];
}
