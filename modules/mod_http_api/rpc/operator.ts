/** What commands may do to the process that runs the node. */

export interface Operator {
  /** Stops the host after running calls have been answered. */
  stop(): void;
  /** Whether `config/edit` may start an editor on the host's terminal (option `api_config_edit`). */
  readonly mayEdit: boolean;
}
