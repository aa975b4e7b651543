/** What was exchanged with a peer, in bytes of blocks. */
export class Ledger {
  sent = 0;
  received = 0;
  /** Number of blocks in both directions. */
  exchanged = 0;

  /** The debt ratio: how much more the peer got than it gave. */
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
