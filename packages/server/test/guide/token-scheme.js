import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Until when it counts, in seconds since 1970, and the proof that its issuer knew the secret. */
const form = /^(?<name>[\w.-]+):(?<untilSeconds>\d+):(?<proof>[0-9a-f]{64})$/;

/** A token such as `anna:1893456000:<64 hexadecimal digits>` proves the name anna until 2030. */
export function proofOf(secret, name, untilSeconds) {
  return createHmac('sha256', secret).update(`${name}:${untilSeconds}`).digest('hex');
}

export default function tokenScheme() {
  const secret = readFileSync(process.env.TOKEN_SECRET_FILE);
  return {
    scheme: 'token',
    authenticate(credentials) {
      const { name, untilSeconds, proof } = form.exec(Buffer.from(credentials ?? []).toString())?.groups ?? {};
      if (name === undefined || Number(untilSeconds) < Date.now() / 1000) return undefined;
      const isRight = timingSafeEqual(Buffer.from(proof), Buffer.from(proofOf(secret, name, untilSeconds)));
      return isRight ? [name] : undefined;
    },
    isValidId: (id) => /^[\w.-]+$/.test(id),
  };
}
