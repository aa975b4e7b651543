/** The certificates of a server, as modules see them. */

/** A certificate that the server serves, or orders and has not got yet. */
export interface CertificateState {
  /** The host name that it is served for; "*": clients that ask for no name, or for one without a certificate. */
  readonly name: string;
  /** `file`: of the option `certificates`. `self-signed`: made by the server. `acme`: by a certificate authority, through ACME. */
  readonly source: "file" | "self-signed" | "acme";
  /** ISO 8601; undefined until it is issued. */
  readonly expires?: string | undefined;
  /** SHA-256 of the certificate, hexadecimal digits in pairs; undefined until it is issued. */
  readonly fingerprint?: string | undefined;
  /** How it stands with the authority; of those by ACME alone. */
  readonly order?: CertificateOrder | undefined;
}

/** What the server asks a certificate authority for, by ACME. */
export interface CertificateOrder {
  /** The host of the authority. */
  readonly authority: string;
  /** When it is asked for a certificate, or whether one is to be renewed; ISO 8601. */
  readonly next_try: string;
  /** Tries in a row that have failed; 0 when the last one has not. */
  readonly failures: number;
  /** Why the last one has failed. */
  readonly error?: string | undefined;
}

/** `certificates-changed`: the names whose certificates are others now. */
export interface CertificatesChangedEvent {
  readonly names: readonly string[];
}
