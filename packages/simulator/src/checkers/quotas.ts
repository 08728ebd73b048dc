import { nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const quotas: Checker = {
  property: '',
  promise: 'Where quotas are enforced a request is refused for one if it would exceed a hard limit, and only then.',
  check: (_recording, { quotaJudgements }) =>
    quotaJudgements
      .filter(({ isTrue }) => !isTrue)
      .map(({ request, zxid, path, isRefused }) =>
        isRefused
          ? `${nameRequest(request)} was refused at ${zxid}, though the quota of ${path} had room for it`
          : `${nameRequest(request)} went through at ${zxid}, though it exceeds the quota of ${path}`,
      ),
};
