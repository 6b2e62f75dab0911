/* The version of oneDNN whose graph API this is; convgrad's own is the hash of dnnl_version(). */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_VERSION_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_VERSION_H_

#define DNNL_VERSION_MAJOR 3
#define DNNL_VERSION_MINOR 14
#define DNNL_VERSION_PATCH 0

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_VERSION_H_ */
