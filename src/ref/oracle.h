// The oracle: the definition of every result. Three loop nests over any strides, sums in f64,
// rounded once; written to be read. It is what the other kernels are checked against.
#ifndef CONVGRAD_REF_ORACLE_H_
#define CONVGRAD_REF_ORACLE_H_

#include "core/parallel.h"
#include "core/problem.h"

namespace convgrad {

// out = beta * out + result; beta 0 does not read out.
void RunOracle(const Problem& problem, const Operands& operands, float beta, const Team& team);

}  // namespace convgrad

#endif  // CONVGRAD_REF_ORACLE_H_
