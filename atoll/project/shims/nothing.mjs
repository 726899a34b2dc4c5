// In place of packages that have no use in a worker.
export default {};
