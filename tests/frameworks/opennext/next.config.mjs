export default { typescript: { ignoreBuildErrors: true } };
