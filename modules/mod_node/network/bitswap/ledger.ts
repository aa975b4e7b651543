/** Counts the bytes of blocks that were exchanged with a peer. */
export class Ledger {
  sent = 0;
  received = 0;
  /** Number of blocks in both directions. */
  exchanged = 0;

  /** The debt ratio: bytes sent divided by bytes received. */
  get value(): number {
    return this.sent / (this.received + 1);
  }

  send(bytes: number): void {
    this.sent += bytes;
    this.exchanged += 1;
  }

  receive(bytes: number): void {
    this.received += bytes;
    this.exchanged += 1;
  }
}
