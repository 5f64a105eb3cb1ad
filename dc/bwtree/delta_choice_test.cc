#include "dc/bwtree/delta_choice.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kWhole = 30 * kKiB;

// An image with a base part of kWhole bytes and delta parts of `bytes` bytes each, the oldest of `oldest` bytes.
ImageParts MergedImage(uint64_t oldest, size_t newer, uint64_t bytes) {
  ImageParts image;
  for (size_t i = 0; i < newer; ++i) image.Append(PageAddress::Make(/*segment=*/2, (i + 32) * 65536, bytes));
  image.Append(PageAddress::Make(/*segment=*/2, (newer + 32) * 65536, oldest));
  image.Append(PageAddress::Make(/*segment=*/1, 4096, kWhole));
  return image;
}

// All delta parts have `bytes` bytes.
ImageParts ImageOf(size_t deltas, uint64_t bytes) {
  if (deltas == 0) return ImageParts(PageAddress::Make(/*segment=*/1, 4096, kWhole));
  return MergedImage(bytes, deltas - 1, bytes);
}

TEST(DeltaChoiceTest, AFewSmallPartsAreAppended) {
  for (size_t deltas = 0; deltas < kMaxDeltaParts; ++deltas) {
    EXPECT_TRUE(DeltaChoice(ImageOf(deltas, 256), kWhole).AppendPays(256)) << deltas;
  }
  EXPECT_FALSE(DeltaChoice(ImageOf(kMaxDeltaParts, 256), kWhole).AppendPays(256));
}

TEST(DeltaChoiceTest, DeltaPartsStayBelowAnEighthOfTheBasePartWhereSpaceIsShort) {
  EXPECT_TRUE(DeltaChoice(ImageOf(1, kKiB), kWhole).AppendPays(4 * kKiB));
  EXPECT_FALSE(DeltaChoice(ImageOf(1, kKiB), kWhole, /*short_of_space=*/true).AppendPays(4 * kKiB));
  EXPECT_TRUE(DeltaChoice(ImageOf(1, kKiB), kWhole, /*short_of_space=*/true).AppendPays(kKiB));
  EXPECT_TRUE(DeltaChoice(ImageOf(3, kKiB), kWhole).MergePays(kKiB, 4 * kKiB));
  EXPECT_FALSE(DeltaChoice(ImageOf(3, kKiB), kWhole, /*short_of_space=*/true).MergePays(kKiB, 4 * kKiB));
  // A part of two units is too large beside a small base part, too.
  ImageParts small;
  small.Append(PageAddress::Make(/*segment=*/1, 4096, 1024));
  EXPECT_TRUE(DeltaChoice(small, 1024).AppendPays(256));
  EXPECT_FALSE(DeltaChoice(small, 1024, /*short_of_space=*/true).AppendPays(256));
}

TEST(DeltaChoiceTest, DeltaPartsStayBelowHalfOfTheBasePart) {
  EXPECT_TRUE(DeltaChoice(ImageOf(2, 5 * kKiB), kWhole).AppendPays(4 * kKiB));
  EXPECT_FALSE(DeltaChoice(ImageOf(2, 5 * kKiB), kWhole).AppendPays(8 * kKiB));
  EXPECT_FALSE(DeltaChoice(ImageOf(3, 5 * kKiB), kWhole).MergePays(8 * kKiB, 20 * kKiB));
}

TEST(DeltaChoiceTest, PartsAreMergedWhenThereAreMany) {
  EXPECT_TRUE(DeltaChoice(ImageOf(3, 256), kWhole).MergePays(/*changed=*/256, /*all=*/1024));
  EXPECT_FALSE(DeltaChoice(ImageOf(2, 256), kWhole).MergePays(/*changed=*/256, /*all=*/768)) << "there are few";
}

TEST(DeltaChoiceTest, PartsAreMergedWhenThatCostsNothing) {
  EXPECT_TRUE(DeltaChoice(ImageOf(1, 256), kWhole).MergePays(/*changed=*/256, /*all=*/256));
}

TEST(DeltaChoiceTest, MergesEndWhenTheyHaveCostAsMuchAsTheWholePage) {
  // All merges since the last base part: all * all / (2 * growth) bytes, with a growth of three parts.
  EXPECT_TRUE(DeltaChoice(MergedImage(5 * kKiB, 2, 256), kWhole).MergePays(/*changed=*/256, /*all=*/6 * kKiB));
  EXPECT_FALSE(DeltaChoice(MergedImage(7 * kKiB, 2, 256), kWhole).MergePays(/*changed=*/256, /*all=*/8 * kKiB));
  EXPECT_TRUE(DeltaChoice(MergedImage(5 * kKiB, 2, 1024), kWhole).MergePays(/*changed=*/1024, /*all=*/8 * kKiB));
}

TEST(DeltaChoiceTest, AMergeOfManyPartsIsOneMerge) {
  // An update while the page was not in memory made each part, so nothing was merged yet.
  EXPECT_TRUE(DeltaChoice(ImageOf(7, kKiB), kWhole).MergePays(/*changed=*/256, /*all=*/7 * kKiB + 256));
}

TEST(DeltaChoiceTest, APageThatIsReadAgainIsLeftWithOneDeltaPart) {
  EXPECT_TRUE(DeltaChoice(ImageOf(0, 256), kWhole, false, kMaxDeltaPartsOfRead).AppendPays(256));
  EXPECT_FALSE(DeltaChoice(ImageOf(1, 256), kWhole, false, kMaxDeltaPartsOfRead).AppendPays(256));
  EXPECT_TRUE(DeltaChoice(ImageOf(1, 256), kWhole, false, kMaxDeltaPartsOfRead).MergePays(256, 512));
  // Also if there is nothing new.
  EXPECT_TRUE(DeltaChoice(ImageOf(2, 256), kWhole, false, kMaxDeltaPartsOfRead).MergePays(/*changed=*/0, 512));
}

TEST(DeltaChoiceTest, MergesOfAPageThatIsReadAgainEndTogetherWithTheOthers) {
  constexpr size_t kMost = kMaxDeltaPartsOfRead;
  // One part of 256 bytes since the last merge.
  EXPECT_TRUE(DeltaChoice(MergedImage(3 * kKiB, 1, 256), kWhole, false, kMost).MergePays(/*changed=*/0, 3 * kKiB));
  EXPECT_FALSE(DeltaChoice(MergedImage(4 * kKiB, 1, 256), kWhole, false, kMost).MergePays(/*changed=*/0, 4 * kKiB));
}

TEST(DeltaChoiceTest, APageThatHasShrunkIsWrittenAsAWhole) {
  EXPECT_TRUE(DeltaChoice(ImageOf(0, 0), kWhole * 2 / 3).AppendPays(256));
  EXPECT_FALSE(DeltaChoice(ImageOf(0, 0), kWhole / 3).AppendPays(256));
}

TEST(DeltaChoiceTest, ASmallPageHasDeltaPartsToo) {
  const ImageParts image(PageAddress::Make(1, 4096, 384));
  EXPECT_TRUE(DeltaChoice(image, 384).AppendPays(128));
  EXPECT_FALSE(DeltaChoice(image, 384).AppendPays(256)) << "more than half of the page";
}

}  // namespace
}  // namespace deut::dc
