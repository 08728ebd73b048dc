declare module 'snappyjs' {
  export function compress(bytes: Buffer): Buffer;
  export function uncompress(bytes: Buffer, maxLength?: number): Buffer;
}
