import type { Report } from '../report.ts';
export async function runElectionPort(_report: Report): Promise<void> {}
