import { transformSync } from 'esbuild';

export default {
  process: (source, file) =>
    transformSync(source, {
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      loader: file.endsWith('.ts') ? 'ts' : 'js',
      sourcemap: 'inline',
      // CommonJS has no import.meta.
      define: { 'import.meta.url': 'importMetaUrl' },
      banner: "const importMetaUrl = require('node:url').pathToFileURL(__filename).href;",
    }),
};
