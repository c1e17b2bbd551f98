/** The host's random source: the core draws nothing by itself. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
}
