/** Control of the process that runs the node. */

export interface Operator {
  /** Stops the host after running calls have ended. */
  stop(): void;
  /**
   * Whether `config/edit` may start an editor on the host's terminal (option `api_config_edit`).
   */
  readonly mayEdit: boolean;
}
