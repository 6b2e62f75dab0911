// Problems that differ in every way a sum can, and the digests of their results in f32: the same on
// every CPU. A change of these numbers is a change of the order of sums, which is a promise.
#ifndef CONVGRAD_TESTS_BITS_TABLE_H_
#define CONVGRAD_TESTS_BITS_TABLE_H_

#include <cstdint>

#include "tests/bits_case.h"

namespace convgrad::tests {

struct BitsRow {
  BitsProblem problem;
  // f32, with bias or its gradient, in the order of kSixNames.
  uint64_t digests[6];
};

inline const BitsRow kBitsTable[] = {
    // clang-format off
    // Sums of one chunk and less than a vector of anything.
    {{"one", 1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
     {0x90a12f151e803a24, 0xba84af8304c73d18, 0x79216bcf1c1654f3,
      0xbd61b99dee9615e6, 0x87872e321253bdba, 0x3d68d7d8a9981b5f}},
    {{"1d", 2, 1, 3, 5, {37}, {3}, {1}, {1}, {1}},
     {0x1d74b12efe779edb, 0x2d56d00bd5313e07, 0xb45dee431fdd45bf,
      0x47e507e579a97413, 0xe2e6642f15567ff1, 0x9747879b31409398}},
    // More taps than a chunk has terms.
    {{"1d-600-taps", 1, 1, 2, 3, {700}, {600}, {1}, {1}, {10}},
     {0xfff6fb59b6ddef50, 0xb4464a376773f244, 0x8bee8a0efe344b36,
      0x05ed4a1aba8108bd, 0x0fb289b7eb92fb11, 0xa10321db156d0ceb}},
    // Three of five phases of dgrad have no tap.
    {{"1d-stride-5", 2, 1, 5, 4, {43}, {2}, {5}, {1}, {0}},
     {0xa70da6b4a0ee4e91, 0xcc66ebb553008bc3, 0xd136886c8f944560,
      0x3d3256e12368dfe0, 0x97d9f38ce601cd2a, 0xb3173f1099b6e083}},
    // Images of several chunks; more rows than a block has.
    {{"1d-long", 2, 1, 17, 16, {1000}, {5}, {1}, {3}, {6}},
     {0x2fdd4a442f891bda, 0xebb6408da51e30c9, 0xe2829dfabde3a140,
      0xae11bd7537feb145, 0xa912a376b88ba706, 0xeba9a476898ab037}},
    // One pixel more than a chunk has terms.
    {{"1d-433-pixels", 2, 1, 3, 1, {433}, {1}, {1}, {1}, {0}},
     {0x437156fdabcb1e7b, 0x49ee4eb887814b68, 0xadaa7c52be7b1eb3,
      0xe3dba59b56bb973f, 0x1800eff007119557, 0x9c567c55e6b5759e}},
    // Tiny images, whose chain runs on: 63 pixels, 6 images in a chunk; 16 pixels; then 64, the
    // first that are not tiny.
    {{"1x1-63-pixels", 8, 1, 24, 17, {7, 9}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
     {0xe60b8fb9f2b713da, 0x59f4a7c9a0822ec5, 0xe4a340e08925bc1b,
      0xa866122e5f651cae, 0x7c6db737417fc7d0, 0xf79ff544e3111b4d}},
    {{"3x3-16-pixels", 30, 1, 17, 5, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0x1a7c363150150524, 0xee899d3e50f2771c, 0xbab299155101f8d9,
      0x016ddc61691549d0, 0xe1335488a202cb0b, 0x36ee6c79848944df}},
    {{"3x3-64-pixels", 3, 1, 5, 3, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0x926c4a47e7c27330, 0x600a99d3418a8d0d, 0x1e0f882ba3dad4cd,
      0xaee2e841e9e9a7c6, 0x54f98b26e3ccc7d6, 0xb9421d338f508d96}},
    {{"1x1", 2, 1, 64, 24, {20, 20}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
     {0x9db0d93a29609ce9, 0xcac186328a2f153b, 0xc4a7a88909ce170b,
      0xf8a1d1ab854a3deb, 0x6fcf8ded169bdb37, 0x92deb164e4c2ca12}},
    {{"1x1-stride-2", 2, 1, 16, 24, {15, 15}, {1, 1}, {2, 2}, {1, 1}, {0, 0}},
     {0x7f201bf3b7001148, 0xe6aa8323730b98ba, 0xe4801add77e02ace,
      0xa58908112d95d6d2, 0x53bd7d8425c1958a, 0xf78a518cfbca71a3}},
    // More columns than a block has.
    {{"1x1-1100-out", 1, 1, 3, 1100, {5, 5}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
     {0xba40a976ac98213b, 0xf1682199f3aabe23, 0x13f55f2696249a61,
      0x12869ccb90c59188, 0x411d08c3d5e7f61f, 0x66e39ef88d6b9bcb}},
    // 600 channels: a sum of two chunks without taps to share out.
    {{"1x1-600-in", 1, 1, 600, 5, {9, 8}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
     {0x700fcc88a4855499, 0x09d14415baa26a8b, 0x7e2e3f5bb023b9d6,
      0xd2d8ce917749a99f, 0xf91b53df03a522ea, 0x879c0e51490767f4}},
    {{"3x3", 2, 1, 16, 24, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0x427313ca8d9acc33, 0xda0439f48786449f, 0xfc33885e8fa75097,
      0x9e2ae9449d15aa24, 0x2e371390f7637235, 0x65b47a7a2e434a30}},
    // Sums of two chunks in blocks that do not fit on the stack.
    {{"3x3-64", 1, 1, 64, 64, {24, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0x0540e247fe62f8a1, 0x71ce6ab6e9322931, 0x97c58dc1dae3a81f,
      0xf514daa51fb490c5, 0x4d7603bd17bce543, 0x0cc7384b2c249d29}},
    // A small weight gradient of many chunks, which threads sum side by side.
    {{"3x3-12-images", 12, 1, 8, 12, {21, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xda2880574cb5df4a, 0x1b84eff76c65392b, 0xee038137b3ccf3dc,
      0xe501be166bf0ca7a, 0xd2089bffc85500a1, 0xe10c4f542887fb2b}},
    {{"7x7-stride-2", 1, 1, 3, 16, {33, 31}, {7, 7}, {2, 2}, {1, 1}, {3, 3}},
     {0x389bb746e5f93130, 0x7abb18cc2b398584, 0xfc41ce65f9a01111,
      0x476906c86a867605, 0xc75ff96ae190c478, 0xe5385c1208566fc4}},
    // Phases of dgrad that share their sums, of several chunks, with taps that not all of them have.
    {{"7x7-stride-2-64-out", 1, 1, 3, 64, {17, 14}, {7, 7}, {2, 2}, {1, 1}, {3, 3}},
     {0x9cf6ec4ece1d609d, 0x4c4978ecf31dad5b, 0x349a5a41d534e8e0,
      0xa1cd7957716ffe91, 0xcb4af7a525e0a496, 0x3c1c28a3988c1bfb}},
    // The same of two chunks, of which some taps meet the first half of the phases and some the second.
    {{"4x4-stride-2-64-out", 1, 1, 3, 64, {22, 48}, {4, 4}, {2, 2}, {1, 1}, {1, 1}},
     {0x3b0c41539b8c9f9d, 0xa13ac8039f318a91, 0x1cb16f1cb379d92a,
      0x6661c2055ca2fe6b, 0xb4d66cf753510c08, 0x90645fbe02a6d8dd}},
    {{"5-stride-3-groups", 2, 3, 15, 300, {31}, {5}, {3}, {1}, {1}},
     {0x0399b9cd2822063a, 0x6ff62a85b589f9c6, 0x6e2b88176d8a1a25,
      0xb5a488ce9b11b021, 0xba5716a20e804480, 0x1ad4ce0e28f0c58d}},
    {{"3x3-groups-4", 2, 4, 20, 12, {10, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xc06b0f679c514f77, 0x082b40c6be600e8f, 0x847e12bb2e9f96bf,
      0x51358897ec4b3108, 0x5b9f1aa99236b21e, 0x5e959021b9481bc3}},
    {{"3x3-depthwise", 2, 16, 16, 16, {12, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
     {0x43cfa82b75aa0d9d, 0xd90c6d85ef35ac26, 0xab0f2e977353a71e,
      0x525ce80aefc51d92, 0x7038b4990be073ee, 0xaa745360485d143a}},
    {{"5x5-multiplier-3", 2, 5, 5, 15, {9, 8}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},
     {0xb51bc58de5c56a4e, 0x5b3a8f4fd918b0db, 0xe55f6e84662ac428,
      0xcb4dc660c7308a95, 0xf49281bfca9fad42, 0x6884741dbfde6468}},
    {{"3x3-dilation", 1, 1, 5, 16, {13, 12}, {3, 3}, {1, 2}, {2, 3}, {2, 3}},
     {0xc6b2405951b29f78, 0xb79671c1018b72cb, 0xccf95f26bc13ee69,
      0xe4c65793949f388a, 0xf0f9a89f47ab2941, 0xa73609c2db6e804f}},
    // Stride and dilation with a divisor in common.
    {{"3x2-stride-4-dilation-2", 1, 1, 3, 5, {17, 19}, {3, 2}, {4, 4}, {2, 6}, {1, 3}},
     {0xee6cb3a7c8ae09ac, 0xcfbb5537e87acdac, 0xc7b82ea17febf29e,
      0x197a47cb36d222be, 0x51f55da7d0fadb65, 0xd1749bae3d4eded1}},
    {{"1x2-stride-3", 2, 1, 17, 3, {14, 13}, {1, 2}, {3, 3}, {1, 1}, {0, 0}},
     {0x19eff21a625936fd, 0x82bff7ae395c2d8e, 0x212b69248f8a5355,
      0xce00550e2111131f, 0xd86aa2be50a82076, 0xf3b4cfa21faffc41}},
    // Windows that lie in the padding alone.
    {{"2x2-pad-4", 2, 1, 2, 3, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {4, 4}},
     {0x44bb319df764cf82, 0x4800c6abb9443aca, 0x7377b1dc4171aa37,
      0x9a874d78992ec046, 0x6890478cdaacb81d, 0xf0efd503a5058f45}},
    {{"3d", 2, 1, 5, 16, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
     {0x2cc7d7df14d84bed, 0x38d18ab51dc06f90, 0x038b36726c4362dd,
      0x1c667ebd356778fc, 0xca9e55dc0e1310be, 0x8daf86e69401e4ab}},
    {{"3d-stride", 1, 1, 3, 17, {9, 8, 7}, {2, 3, 1}, {2, 2, 3}, {1, 1, 1}, {0, 1, 0}},
     {0x0b3bb56ee40ab580, 0x5a78ac5505dcb1f2, 0x862c4e1dea8e64da,
      0x2dc5dbbc881975b9, 0x81df1ddf1fd3dd22, 0xe6384c4216a44185}},
    {{"3d-729-taps", 1, 1, 1, 2, {9, 9, 9}, {9, 9, 9}, {1, 1, 1}, {1, 1, 1}, {4, 4, 4}},
     {0xfaaefbc953ace7ee, 0xa9ce4030a74a6e87, 0xb6db5faeb7ca430a,
      0x287669b3e974581a, 0xbfc4bcf950ed21ea, 0x0ab3bea759585633}},
    // Few pixels, long sums: chunks side by side.
    {{"3x3-600-channels-4x4", 1, 1, 600, 40, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xa5e475bdb341e81f, 0xd58c23b33f419bbd, 0x19582f526a06bc0d,
      0x318795a774cbcc66, 0x4432ef01f7a76b0c, 0xaf05ad3d02aaa321}},
    // Kernels of which most is padding: of each pixel, a box of taps is left. Images of one position
    // are next to each other, in three dimensions one by one; long lines; phases that are written
    // together.
    {{"7x7-covers-images", 9, 1, 24, 20, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {0, 0}},
     {0x76fc1c6059339ba5, 0xad35d22f529b5a38, 0x9a7ba42c05e61bf1,
      0x071ef1f08583d3bb, 0x37c67b1e5d3fc467, 0x590cf03ef47c7e0f}},
    {{"3d-covers-images", 5, 1, 18, 17, {3, 5, 4}, {3, 5, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
     {0x993eb25a24c63781, 0x3ff1a08c55688c02, 0x2fdf0e8a5ec846cd,
      0x96f26d9a1e44fab7, 0x6eb328e0652102d9, 0xd57fedd2b528aeb9}},
    {{"3x3-far-apart", 2, 1, 17, 24, {5, 33}, {3, 3}, {1, 1}, {2, 18}, {2, 18}},
     {0x89c4fc25562991b9, 0x8716ab95eabca436, 0x11c29b4fc624f65b,
      0xec32cf93d8af484d, 0x77a6f499cb9c3735, 0x50b31c14178b0fdf}},
    {{"7x7-stride-2-small", 6, 1, 40, 18, {6, 8}, {7, 7}, {2, 2}, {1, 1}, {2, 2}},
     {0x340cf27b8414a329, 0x085816048517f9a1, 0xacbb27ffe01ef7f9,
      0xd9487857b2fd2ed4, 0xedce81107d536593, 0xf1edd9c83d0cfcd5}},
    // Lines that are packed once for all their taps.
    {{"3x7-lines-stride-2", 2, 1, 5, 24, {6, 56}, {3, 7}, {1, 2}, {1, 1}, {1, 3}},
     {0x4476d92a317f68ba, 0xdcb604de77af155b, 0xfc28275e8e011e19,
      0xf700720637a1d143, 0x4182b633cb15007c, 0xc2e3da9c7a5ee5a4}},
    {{"3x5-lines-dilation", 1, 1, 20, 13, {5, 28}, {3, 5}, {1, 1}, {1, 2}, {1, 4}},
     {0x199024a089164b3d, 0xaba06d406e54b0e2, 0x237e782103243060,
      0x76e764b56159a311, 0x9ffaba0ae1faa3e8, 0xa8a000617f8ce4ba}},
    // Groups of few channels: lines copied, vectors across groups.
    {{"3x3-depthwise-40x40", 2, 40, 40, 40, {40, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xbbb0ead14d192d20, 0x9608ce9e24e86ff5, 0x80200490f7898121,
      0xc9353d72206605e1, 0xdf30972d14cbd322, 0x49359a49f890a31c}},
    {{"7x7-depthwise-stride-2", 2, 21, 21, 21, {23, 21}, {7, 7}, {2, 2}, {1, 1}, {3, 3}},
     {0xb8735d97b698696a, 0xf7ab714ba5581de3, 0x71bc2c5c37d0fd09,
      0xe7cef926894c976c, 0x43b42c2114ad7189, 0x210cd0b836efad8c}},
    {{"1d-depthwise-4-taps", 2, 37, 37, 37, {450}, {4}, {1}, {1}, {3}},
     {0xb0df98f1c3b401c7, 0x6442251b8ecac111, 0x172166c4bbc03708,
      0x06f63521e57db29d, 0xfd23c1762ca1c9ae, 0x2eab648673ee61df}},
    {{"3d-depthwise", 2, 18, 18, 18, {6, 7, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
     {0x77beb30f5c62255a, 0x293a65c1eb6ba0b7, 0xa02f5726c51261a7,
      0xf3c5124977a91095, 0xb4e9ccf476972ee7, 0x51d1d5aa1fa41beb}},
    {{"3x3-multiplier-2", 2, 19, 19, 38, {13, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xada921b65c8002c1, 0xef866017015deda9, 0xbeda7ea273e97eb9,
      0xced99253f535c52d, 0xd53e58024c9495f4, 0xa1e95fe1d1cc7ab4}},
    {{"3x3-groups-of-4", 2, 9, 36, 36, {14, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xbe5944bfca714634, 0x2f291b869a803911, 0x038ff18101fd6e78,
      0x9daccc68839418c4, 0x8a10c6c2443891f0, 0x306f83d0c9e5c85d}},
    {{"3x3-groups-of-8-to-4", 2, 5, 40, 20, {11, 12}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
     {0x11d2f064d959332a, 0x1424d1f9445cd7d6, 0x6927685e20897c83,
      0xc0623c603b04e4e9, 0x4c234a24096ac394, 0xaa94f140ac45bcba}},
    {{"3x3-groups-of-16", 2, 3, 48, 48, {12, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0x8f83f49b0da4d611, 0xcdecc84923c95f87, 0x3d26b061c3a247ac,
      0x477ae0e391f91ae8, 0xc477725980bccac7, 0xb65d4b73621774d1}},
    // Tiny images, whose chain runs on, and sums of two chunks.
    {{"3x3-depthwise-25-images", 25, 18, 18, 18, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
     {0xbdb21bff74ebd884, 0xa23ae923e541a7cd, 0xb25ffebc089cab9c,
      0x1715df0b57792e07, 0x2bcb16aa19a39f40, 0x9001a5ab1863f271}},
    {{"21x21-depthwise", 1, 6, 6, 6, {24, 23}, {21, 21}, {1, 1}, {1, 1}, {10, 10}},
     {0x1d74a010cabae96e, 0xaff0be67ac499153, 0x3a71b973f97083ca,
      0x9bebda918c829482, 0x1bafd70d2b2f0696, 0x6c3890aef4466f2d}},
    // clang-format on
};

// What the table has not, where terms are summed four at a time in chunks of 864: chunks that end
// inside an image, with a line and without; tiny images of more than one chunk; numbers of taps at
// the end of what is in quads.
inline const BitsProblem kLongSums[] = {
    {"lines-of-37", 2, 1, 5, 13, {50, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"merged-lines", 2, 1, 5, 13, {50, 37}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {"a-line-of-865", 1, 1, 3, 9, {2, 865}, {1, 3}, {1, 1}, {1, 1}, {0, 1}},
    {"a-line-of-864", 1, 1, 9, 3, {3, 864}, {1, 3}, {1, 1}, {1, 1}, {0, 1}},
    {"the-last-axis-is-one", 2, 1, 3, 5, {500, 1}, {3, 1}, {1, 1}, {1, 1}, {1, 0}},
    {"only-rows-are-plain", 1, 1, 3, 5, {7, 30, 31}, {1, 3, 1}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0}},
    {"columns-are-plain", 1, 1, 3, 5, {7, 30, 31}, {3, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}},
    {"63-pixels-40-images", 40, 1, 7, 9, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"one-pixel-900-images", 900, 1, 6, 7, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {"216-taps", 1, 1, 5, 6, {7, 8, 9}, {6, 6, 6}, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}},
    {"217-taps", 1, 1, 5, 6, {12, 40}, {7, 31}, {1, 1}, {1, 1}, {3, 9}},
    {"433-taps-stride-2", 1, 1, 10, 11, {900}, {433}, {2}, {1}, {3}},
    {"3x3-97-channels", 1, 1, 97, 98, {6, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3-200-channels-stride-2", 1, 1, 200, 193, {8, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {"groups-of-6-and-7", 2, 3, 18, 21, {9, 10}, {3, 2}, {2, 1}, {1, 1}, {1, 0}},
};

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_BITS_TABLE_H_
