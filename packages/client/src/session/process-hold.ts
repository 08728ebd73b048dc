/** Keeps the process running while there were more calls of `hold` than of `release`. */
export interface ProcessHold {
  hold(): void;
  release(): void;
}

/** Keeps the process running until the promise settles. undefined: the process needs no hold. */
export function holdUntilSettled<Result>(processHold: ProcessHold | undefined, promise: Promise<Result>): Promise<Result> {
  if (processHold === undefined) return promise;
  processHold.hold();
  return promise.finally(() => processHold.release());
}
