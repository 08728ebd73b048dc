/**
 * Where a machine of the core writes down its state, for whoever explores all the states it can reach.
 *
 * Two machines that wrote the same will do the same for the same inputs. So everything that can influence behaviour is written, in an
 * order that does not depend on how the state came about (tables by ascending key), and nothing else: a state that differs only in what
 * nobody looks at would be explored twice. Points in time are written as distances from now, since nothing depends on when a clock began.
 */
export interface Fingerprint {
  number(value: number): void;
  text(value: string): void;
}
