import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const quotas: Checker = {
  property: '',
  promise: 'Where quotas are enforced, a request is refused for a quota if and only if it would exceed a hard limit.',
  check: (_recording, { quotaDecisions }) =>
    quotaDecisions
      .filter(({ isCorrect }) => !isCorrect)
      .map(({ request, zxid, path, isRefused }) =>
        isRefused
          ? `${requestText(request)} was refused at ${zxid}, but is within the quota of ${path}`
          : `${requestText(request)} succeeded at ${zxid}, but exceeds the quota of ${path}`,
      ),
};
