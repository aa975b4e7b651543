/** What commands may ask of those who run the node. */

export interface Operator {
  /** Ends the host, once the calls that run have their answers. */
  stop(): void;
  /** `config/edit` may start the editor on the terminal of the host (`api_config_edit`). */
  readonly mayEdit: boolean;
}
