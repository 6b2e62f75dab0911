// convgrad for C++20: the convolution family of a training step. (C: convgrad/convgrad.h)
#ifndef CONVGRAD_CONVGRAD_HPP_
#define CONVGRAD_CONVGRAD_HPP_

#include "convgrad/backward.h"
#include "convgrad/operation.h"
#include "convgrad/plan.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "convgrad/types.h"
#include "convgrad/version.h"

#endif  // CONVGRAD_CONVGRAD_HPP_
